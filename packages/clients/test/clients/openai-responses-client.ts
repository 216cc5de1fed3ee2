import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import type { Answer, CreateClient } from "../client.ts";
import { citySchema } from "../client.ts";

type Response = OpenAI.Responses.Response;

const answer = ({ output_text, usage }: Response): Answer => ({
  text: output_text,
  promptTokens: usage?.input_tokens,
  completionTokens: usage?.output_tokens,
});

const errors = {
  401: OpenAI.AuthenticationError,
  404: OpenAI.NotFoundError,
  429: OpenAI.RateLimitError,
} as const;

/** The tool `get_weather` in the flat shape of Responses. */
export const weatherTool: OpenAI.Responses.FunctionTool = {
  type: "function",
  name: "get_weather",
  description: "The weather of a city",
  parameters: citySchema,
  strict: true,
};

/** The results of a response's calls, as the input of the next request. */
export const toolOutputs = (
  { output }: Response,
  getWeather: (city: string) => string,
): OpenAI.Responses.ResponseInputItem[] =>
  output.flatMap((item) => {
    if (item.type !== "function_call") return [];
    const { city } = z.object({ city: z.string() }).parse(JSON.parse(item.arguments));
    return { type: "function_call_output", call_id: item.call_id, output: getWeather(city) };
  });

/** The official SDK over Responses. */
export const createOpenAiResponsesClient: CreateClient = ({ baseURL, apiKey, model }) => {
  const { responses } = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  return {
    plain: async (input) => answer(await responses.create({ model, input })),
    async streamed(input, onDelta) {
      const stream = responses.stream({ model, input });
      for await (const event of stream) {
        if (event.type === "response.output_text.delta") onDelta(event.delta);
        if (event.type === "error") throw new Error(event.message);
      }
      return answer(await stream.finalResponse());
    },
    async withTool(input, getWeather) {
      const tools = [weatherTool];
      let response = await responses.create({ model, input, tools });
      for (;;) {
        const results = toolOutputs(response, getWeather);
        if (results.length === 0) return response.output_text;
        response = await responses.create({
          model,
          input: results,
          tools,
          previous_response_id: response.id,
        });
      }
    },
    async structured(input) {
      const schema = z.object({ city: z.string(), degrees: z.number() });
      const text = { format: zodTextFormat(schema, "degrees") };
      return (await responses.parse({ model, input, text })).output_parsed;
    },
    async aboutImage(prompt, image_url) {
      const content = [
        { type: "input_text" as const, text: prompt },
        { type: "input_image" as const, image_url, detail: "auto" as const },
      ];
      return (await responses.create({ model, input: [{ role: "user", content }] })).output_text;
    },
    isStatus: (error, status) => error instanceof errors[status],
  };
};
