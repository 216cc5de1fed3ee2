import { createOpenAiClient } from "./clients/openai-client.ts";
import { describeClient } from "./describe-client.ts";
import { serveByCommand } from "./served-gateway.ts";

describeClient("openai, against tollgate serve", serveByCommand, createOpenAiClient);
