import { fileURLToPath } from "node:url";
import { describeServer } from "../../describe-server.ts";

describeServer("bare-node", fileURLToPath(new URL("..", import.meta.url)));
