import {
  Agent,
  type Model,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  Runner,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import type { Client, CreateClient } from "../client.ts";

const errors = {
  401: OpenAI.AuthenticationError,
  404: OpenAI.NotFoundError,
  429: OpenAI.RateLimitError,
} as const;

/** OpenAI Agents over Chat Completions. */
export const createAgentsClient: CreateClient = ({ baseURL, apiKey, model }) =>
  agentsClient(
    new OpenAIChatCompletionsModel(new OpenAI({ baseURL, apiKey, maxRetries: 0 }), model),
  );

/** OpenAI Agents over Responses. */
export const createAgentsResponsesClient: CreateClient = ({ baseURL, apiKey, model }) =>
  agentsClient(new OpenAIResponsesModel(new OpenAI({ baseURL, apiKey, maxRetries: 0 }), model));

function agentsClient(model: Model): Client {
  setTracingDisabled(true);
  const runner = new Runner({ tracingDisabled: true });
  const agent = new Agent({ name: "Assistant", model });
  return {
    async plain(prompt) {
      const { finalOutput, runContext } = await runner.run(agent, prompt);
      return {
        text: finalOutput ?? "",
        promptTokens: runContext.usage.inputTokens,
        completionTokens: runContext.usage.outputTokens,
      };
    },
    async streamed(prompt, onDelta) {
      const result = await runner.run(agent, prompt, { stream: true });
      for await (const delta of result.toTextStream()) onDelta(delta);
      await result.completed;
      return {
        text: result.finalOutput ?? "",
        promptTokens: result.runContext.usage.inputTokens,
        completionTokens: result.runContext.usage.outputTokens,
      };
    },
    async withTool(prompt, getWeather) {
      const weather = tool({
        name: "get_weather",
        description: "The weather of a city",
        parameters: z.object({ city: z.string() }),
        execute: async ({ city }) => getWeather(city),
      });
      const withTools = new Agent({ name: "Assistant", model, tools: [weather] });
      return (await runner.run(withTools, prompt)).finalOutput ?? "";
    },
    async structured(prompt) {
      const outputType = z.object({ city: z.string(), degrees: z.number() });
      const structured = new Agent({ name: "Assistant", model, outputType });
      return (await runner.run(structured, prompt)).finalOutput;
    },
    async aboutImage(prompt, image) {
      const content = [
        { type: "input_text" as const, text: prompt },
        { type: "input_image" as const, image },
      ];
      return (await runner.run(agent, [{ role: "user", content }])).finalOutput ?? "";
    },
    isStatus: (error, status) => error instanceof errors[status],
  };
}
