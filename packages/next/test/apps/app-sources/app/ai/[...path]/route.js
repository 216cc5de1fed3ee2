import { toNextHandlers } from "@tollgate/next";
import { gateway } from "../../gateway.js";

export const { GET, POST, DELETE } = toNextHandlers(gateway);
