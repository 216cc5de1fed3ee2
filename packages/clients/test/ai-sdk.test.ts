import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createAiSdkClient } from "./clients/ai-sdk-client.ts";
import { describeClient } from "./describe-client.ts";
import { serveInProcess } from "./served-gateway.ts";

describeClient("@ai-sdk/openai-compatible", serveInProcess, ({ baseURL, apiKey, model }) => {
  const options = { includeUsage: true, supportsStructuredOutputs: true };
  return createAiSdkClient(
    createOpenAICompatible({ name: "tollgate", baseURL, apiKey, ...options })(model),
  );
});

describeClient("@ai-sdk/openai, chat", serveInProcess, ({ baseURL, apiKey, model }) =>
  createAiSdkClient(createOpenAI({ baseURL, apiKey }).chat(model)),
);
