import { fileURLToPath } from "node:url";
import { describeServer } from "../../describe-server.ts";

describeServer("express-app", fileURLToPath(new URL("..", import.meta.url)));
