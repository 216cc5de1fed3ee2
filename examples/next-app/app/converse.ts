import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { weatherTool } from "./weather.ts";

const longestAnswerTokens = 120;

/** The events of an answer as it arrives. */
export interface Listener {
  onText(text: string): void;
  onToolCall(call: string): void;
}

/** Runs one Turn of a conversation through this app's gateway, including tools. Returns all messages so far. */
export async function converse(
  messages: readonly ChatCompletionMessageParam[],
  listener: Listener,
): Promise<readonly ChatCompletionMessageParam[]> {
  const client = new OpenAI({
    baseURL: `${location.origin}/ai/v1`,
    apiKey: "none", // The visitor's cookie says who calls.
    dangerouslyAllowBrowser: true,
  });
  const runner = client.chat.completions
    .runTools({
      model: "sim/tollgate/echo",
      messages: [...messages],
      tools: [weatherTool],
      max_completion_tokens: longestAnswerTokens,
      stream: true,
    })
    .on("content", (text) => listener.onText(text))
    .on("functionToolCall", (call) => listener.onToolCall(`${call.name}(${call.arguments})`));
  await runner.done();
  return runner.messages;
}
