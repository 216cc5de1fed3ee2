import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { createAgentsResponsesClient } from "./clients/agents-client.ts";
import { createAiSdkClient } from "./clients/ai-sdk-client.ts";
import { createLangchainResponsesClient } from "./clients/langchain-client.ts";
import { createOpenAiResponsesClient } from "./clients/openai-responses-client.ts";
import { describeClient } from "./describe-client.ts";
import { serveInMemory, serveInProcess } from "./served-gateway.ts";

for (const [store, start] of [
  ["memoryStore", serveInMemory],
  ["sqliteStore", serveInProcess],
] as const) {
  describeClient(`openai, Responses, on ${store}`, start, createOpenAiResponsesClient);
  describeClient(`@ai-sdk/openai, its default, on ${store}`, start, ({ baseURL, apiKey, model }) =>
    createAiSdkClient(createOpenAI({ baseURL, apiKey })(model)),
  );
  describeClient(`@ai-sdk/open-responses, on ${store}`, start, ({ baseURL, apiKey, model }) =>
    createAiSdkClient(
      createOpenResponses({ name: "tollgate", url: `${baseURL}/responses`, apiKey })(model),
    ),
  );
  describeClient(`@openai/agents, Responses mode, on ${store}`, start, createAgentsResponsesClient);
  describeClient(
    `@langchain/openai with useResponsesApi, on ${store}`,
    start,
    createLangchainResponsesClient,
  );
}
