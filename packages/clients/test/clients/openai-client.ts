import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import type { Answer, CreateClient } from "../client.ts";
import { citySchema } from "../client.ts";

type Usage = OpenAI.CompletionUsage | null | undefined;

const answer = (text: string, usage: Usage): Answer => ({
  text,
  promptTokens: usage?.prompt_tokens,
  completionTokens: usage?.completion_tokens,
});

const errors = {
  401: OpenAI.AuthenticationError,
  404: OpenAI.NotFoundError,
  429: OpenAI.RateLimitError,
} as const;

/** The official SDK. */
export const createOpenAiClient: CreateClient = ({ baseURL, apiKey, model }) => {
  const { chat } = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const user = (content: string) => ({ role: "user" as const, content });
  return {
    async plain(prompt) {
      const { choices, usage } = await chat.completions.create({ model, messages: [user(prompt)] });
      return answer(choices[0]?.message.content ?? "", usage);
    },
    async streamed(prompt, onDelta) {
      const stream = await chat.completions.create({
        model,
        messages: [user(prompt)],
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = "";
      let usage: Usage;
      for await (const chunk of stream) {
        const delta = chunk.choices[0]?.delta.content ?? "";
        if (delta !== "") onDelta(delta);
        text += delta;
        usage = chunk.usage ?? usage;
      }
      return answer(text, usage);
    },
    async withTool(prompt, getWeather) {
      const runner = chat.completions.runTools({
        model,
        messages: [user(prompt)],
        tools: [
          {
            type: "function",
            function: {
              name: "get_weather",
              description: "The weather of a city",
              parameters: citySchema,
              parse: (text: string) => z.object({ city: z.string() }).parse(JSON.parse(text)),
              function: ({ city }: { city: string }) => getWeather(city),
            },
          },
        ],
      });
      return (await runner.finalContent()) ?? "";
    },
    async structured(prompt) {
      const format = z.object({ city: z.string(), degrees: z.number() });
      const { choices } = await chat.completions.parse({
        model,
        messages: [user(prompt)],
        response_format: zodResponseFormat(format, "degrees"),
      });
      return choices[0]?.message.parsed;
    },
    async aboutImage(prompt, url) {
      const content = [
        { type: "text" as const, text: prompt },
        { type: "image_url" as const, image_url: { url } },
      ];
      const { choices } = await chat.completions.create({
        model,
        messages: [{ role: "user", content }],
      });
      return choices[0]?.message.content ?? "";
    },
    isStatus: (error, status) => error instanceof errors[status],
  };
};
