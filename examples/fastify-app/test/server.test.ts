import { fileURLToPath } from "node:url";
import { describeServer } from "../../describe-server.ts";

describeServer("fastify-app", fileURLToPath(new URL("..", import.meta.url)));
