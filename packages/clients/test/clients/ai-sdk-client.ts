import {
  APICallError,
  generateText,
  jsonSchema,
  type LanguageModel,
  type LanguageModelUsage,
  Output,
  stepCountIs,
  streamText,
  tool,
} from "ai";
import { type Answer, type Client, citySchema, degreesSchema } from "../client.ts";

const answer = (text: string, usage: LanguageModelUsage): Answer => ({
  text,
  promptTokens: usage.inputTokens,
  completionTokens: usage.outputTokens,
});

const city = jsonSchema<{ readonly city: string }>({ ...citySchema, type: "object" });

/** The AI SDK over one of its language models. */
export const createAiSdkClient = (model: LanguageModel): Client => ({
  async plain(prompt) {
    const { text, usage } = await generateText({ model, prompt, maxRetries: 0 });
    return answer(text, usage);
  },
  async streamed(prompt, onDelta) {
    const result = streamText({ model, prompt, maxRetries: 0, onError: () => {} });
    let text = "";
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type !== "text-delta") continue;
      onDelta(part.text);
      text += part.text;
    }
    return answer(text, await result.usage);
  },
  async withTool(prompt, getWeather) {
    const execute = ({ city: name }: { readonly city: string }) => getWeather(name);
    const weather = tool({ description: "The weather of a city", inputSchema: city, execute });
    const { text } = await generateText({
      model,
      prompt,
      maxRetries: 0,
      tools: { get_weather: weather },
      stopWhen: stepCountIs(3),
    });
    return text;
  },
  async structured(prompt) {
    const schema = jsonSchema({ ...degreesSchema, type: "object" });
    const output = Output.object({ schema });
    return (await generateText({ model, prompt, output, maxRetries: 0 })).output;
  },
  async aboutImage(prompt, image) {
    const content = [
      { type: "text" as const, text: prompt },
      { type: "file" as const, mediaType: "image/png", data: image },
    ];
    const messages = [{ role: "user" as const, content }];
    const { text } = await generateText({ model, messages, maxRetries: 0 });
    return text;
  },
  isStatus: (error, status) => APICallError.isInstance(error) && error.statusCode === status,
});
