import type { AIMessageChunk, UsageMetadata } from "@langchain/core/messages";
import { HumanMessage, type ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import { type Answer, type Client, type CreateClient, degreesSchema } from "../client.ts";

const answer = (text: string, usage: UsageMetadata | undefined): Answer => ({
  text,
  promptTokens: usage?.input_tokens,
  completionTokens: usage?.output_tokens,
});

/** LangChain's chat model over Chat Completions. */
export const createLangchainClient: CreateClient = ({ baseURL, apiKey, model }) =>
  langchainClient(new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL } }));

/** LangChain's chat model over Responses. */
export const createLangchainResponsesClient: CreateClient = ({ baseURL, apiKey, model }) =>
  langchainClient(
    new ChatOpenAI({
      model,
      apiKey,
      maxRetries: 0,
      useResponsesApi: true,
      configuration: { baseURL },
    }),
  );

function langchainClient(model: ChatOpenAI): Client {
  return {
    async plain(prompt) {
      const message = await model.invoke(prompt);
      return answer(message.text, message.usage_metadata);
    },
    async streamed(prompt, onDelta) {
      let whole: AIMessageChunk | undefined;
      for await (const chunk of await model.stream(prompt)) {
        if (chunk.text !== "") onDelta(chunk.text);
        whole = whole === undefined ? chunk : whole.concat(chunk);
      }
      return answer(whole?.text ?? "", whole?.usage_metadata);
    },
    async withTool(prompt, getWeather) {
      const weather = tool(({ city }: { city: string }) => getWeather(city), {
        name: "get_weather",
        description: "The weather of a city",
        schema: z.object({ city: z.string() }),
      });
      const bound = model.bindTools([weather]);
      const question = new HumanMessage(prompt);
      const asked = await bound.invoke([question]);
      const results: ToolMessage[] = [];
      for (const call of asked.tool_calls ?? []) {
        results.push(await weather.invoke({ ...call, type: "tool_call" as const }));
      }
      return (await bound.invoke([question, asked, ...results])).text;
    },
    structured: (prompt) =>
      model
        .withStructuredOutput(degreesSchema, { name: "degrees", method: "jsonSchema" })
        .invoke(prompt),
    async aboutImage(prompt, url) {
      const content = [
        { type: "text" as const, text: prompt },
        { type: "image_url" as const, image_url: { url } },
      ];
      return (await model.invoke([new HumanMessage({ content })])).text;
    },
    isStatus: (error, status) =>
      error instanceof Error && "status" in error && error.status === status,
  };
}
