import { createLangchainClient } from "./clients/langchain-client.ts";
import { describeClient } from "./describe-client.ts";
import { serveInProcess } from "./served-gateway.ts";

describeClient("@langchain/openai", serveInProcess, createLangchainClient);
