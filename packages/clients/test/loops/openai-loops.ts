import OpenAI from "openai";
import { type Converse, type LoopTarget, runTool, tools } from "./loop.ts";

const clientOf = ({ baseURL, apiKey, fetch }: LoopTarget) =>
  new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 });

/** The official SDK's loop over Chat Completions. */
export const runToolsLoop: Converse = async (target, prompts) => {
  const { chat } = clientOf(target);
  const { model } = target;
  const functions = tools.map(({ name, description, parameters, run }) => ({
    type: "function" as const,
    function: {
      name,
      description,
      parameters,
      parse: (text: string): object => JSON.parse(text === "" ? "{}" : text),
      function: run,
    },
  }));
  let messages: OpenAI.ChatCompletionMessageParam[] = [];
  const answers: string[] = [];
  for (const content of prompts) {
    messages.push({ role: "user", content });
    const runner = target.stream
      ? chat.completions.runTools({ model, messages, tools: functions, stream: true })
      : chat.completions.runTools({ model, messages, tools: functions });
    answers.push((await runner.finalContent()) ?? "");
    messages = [...runner.messages];
  }
  return answers;
};

/** The documented loop over Chat Completions: each message is appended unchanged. */
export const chatLoop: Converse = async (target, prompts) => {
  const { chat } = clientOf(target);
  const offered = tools.map(({ name, description, parameters }) => ({
    type: "function" as const,
    function: { name, description, parameters },
  }));
  const messages: OpenAI.ChatCompletionMessageParam[] = [];
  const answers: string[] = [];
  for (const content of prompts) {
    messages.push({ role: "user", content });
    for (;;) {
      const body = { model: target.model, messages, tools: offered };
      const { choices } = target.stream
        ? await chat.completions.stream(body).finalChatCompletion()
        : await chat.completions.create(body);
      const message = choices[0]?.message;
      if (message === undefined) throw new Error("The answer has no message.");
      messages.push(message);
      for (const call of message.tool_calls ?? [])
        if (call.type === "function")
          messages.push({
            role: "tool",
            tool_call_id: call.id,
            content: runTool(call.function.name, call.function.arguments),
          });
      if (message.tool_calls?.length) continue;
      answers.push(message.content ?? "");
      break;
    }
  }
  return answers;
};

const functionTools = tools.map(({ name, description, parameters }) => ({
  type: "function" as const,
  name,
  description,
  parameters,
  strict: true,
}));

type Output = OpenAI.Responses.ResponseOutputItem;

/** The kinds of output of a model with function tools. Some other kinds don't fit the type of an input. */
const isKept = (
  item: Output,
): item is Extract<Output, { type: "message" | "reasoning" | "function_call" }> =>
  ["message", "reasoning", "function_call"].includes(item.type);

/** The documented loop over Responses, with the output appended to the input, or chained by `previous_response_id`. */
const responsesLoop =
  (chained: boolean): Converse =>
  async (target, prompts) => {
    const { responses } = clientOf(target);
    const { model } = target;
    const answers: string[] = [];
    let input: OpenAI.Responses.ResponseInputItem[] = [];
    let previous: string | null = null;

    async function ask(): Promise<OpenAI.Responses.Response> {
      const body = {
        model,
        input,
        tools: functionTools,
        ...(chained
          ? { previous_response_id: previous }
          : { store: false, include: ["reasoning.encrypted_content" as const] }),
      };
      if (!target.stream) return responses.create(body);
      return responses.stream(body).finalResponse();
    }

    for (const content of prompts) {
      input.push({ role: "user", content });
      for (;;) {
        const response = await ask();
        if (chained) {
          input = [];
          previous = response.id;
        } else input.push(...response.output.filter(isKept));
        const calls = response.output.filter((item) => item.type === "function_call");
        for (const { call_id, name, arguments: written } of calls)
          input.push({ type: "function_call_output", call_id, output: runTool(name, written) });
        if (calls.length > 0) continue;
        answers.push(response.output_text);
        break;
      }
    }
    return answers;
  };

export const statelessResponsesLoop = responsesLoop(false);
export const chainedResponsesLoop = responsesLoop(true);
