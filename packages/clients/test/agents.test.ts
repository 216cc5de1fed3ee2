import { createAgentsClient } from "./clients/agents-client.ts";
import { describeClient } from "./describe-client.ts";
import { serveInProcess } from "./served-gateway.ts";

describeClient("@openai/agents, chat mode", serveInProcess, createAgentsClient);
