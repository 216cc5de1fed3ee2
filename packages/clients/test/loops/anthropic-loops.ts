import { createAnthropic } from "@ai-sdk/anthropic";
import Anthropic from "@anthropic-ai/sdk";
import { aiSdk7Loop } from "./ai-sdk-loops.ts";
import { type Converse, runTool, tools } from "./loop.ts";

/** The AI SDK with its own Anthropic provider. */
export const anthropicLoop: Converse = aiSdk7Loop(({ baseURL, apiKey, model, fetch }) =>
  createAnthropic({ baseURL, apiKey, fetch })(model),
);

/** Anthropic's SDK with a handwritten loop. */
const messagesLoop: Converse = async ({ baseURL, apiKey, model, stream, fetch }, prompts) => {
  const client = new Anthropic({
    baseURL: baseURL.replace(/\/v1$/, ""),
    apiKey,
    fetch,
    maxRetries: 0,
  });
  const asked = {
    model,
    max_tokens: 1_000,
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      description,
      input_schema: parameters,
    })),
  };
  const messages: Anthropic.MessageParam[] = [];
  const answers: string[] = [];
  for (const prompt of prompts) {
    messages.push({ role: "user", content: prompt });
    for (;;) {
      const { content } = stream
        ? await client.messages.stream({ ...asked, messages }).finalMessage()
        : await client.messages.create({ ...asked, messages });
      messages.push({ role: "assistant", content });
      const results = content.flatMap((block) =>
        block.type === "tool_use"
          ? {
              type: "tool_result" as const,
              tool_use_id: block.id,
              content: runTool(block.name, JSON.stringify(block.input)),
            }
          : [],
      );
      if (results.length > 0) messages.push({ role: "user", content: results });
      else {
        answers.push(content.map((block) => (block.type === "text" ? block.text : "")).join(""));
        break;
      }
    }
  }
  return answers;
};

/** Every way to call a gateway over the Messages API. */
export const anthropicLoops = {
  "ai 7, @ai-sdk/anthropic Messages": anthropicLoop,
  "@anthropic-ai/sdk Messages": messagesLoop,
};
