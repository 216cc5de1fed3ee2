import { toNextHandlers } from "@tollgate/next";
import { gateway } from "../../gateway.ts";

export const { GET, POST, DELETE } = toNextHandlers(gateway);
