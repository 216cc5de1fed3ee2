import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAI as createOpenAI2 } from "@ai-sdk/openai-2";
import { createOpenAI as createOpenAI3 } from "@ai-sdk/openai-3";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenAICompatible as createOpenAICompatible1 } from "@ai-sdk/openai-compatible-1";
import { createOpenAICompatible as createOpenAICompatible2 } from "@ai-sdk/openai-compatible-2";
import * as ai from "ai";
import * as ai5 from "ai-5";
import * as ai6 from "ai-6";
import { type Converse, type LoopTarget, tools } from "./loop.ts";

type Make<Model> = (target: LoopTarget) => Model;

const maxSteps = 5;

/** Keeps the history of a conversation. `ask` takes the messages so far, and returns the new messages and the text. */
async function converse<Message>(
  prompts: readonly string[],
  question: (content: string) => Message,
  ask: (messages: Message[]) => Promise<{ text: string; added: readonly Message[] }>,
): Promise<readonly string[]> {
  const messages: Message[] = [];
  const answers: string[] = [];
  for (const prompt of prompts) {
    messages.push(question(prompt));
    const { text, added } = await ask(messages);
    messages.push(...added);
    answers.push(text);
  }
  return answers;
}

/** The scripted tools in the format of one version of the SDK. */
const toolSet = <Tool>(make: (scripted: (typeof tools)[number]) => Tool) =>
  Object.fromEntries(tools.map((scripted) => [scripted.name, make(scripted)]));

/** Reads a stream to its end and throws its error, which the SDK only reports. */
async function readToEnd<Result extends { consumeStream(): PromiseLike<void> }>(
  start: (onError: (event: { error: unknown }) => void) => Result,
): Promise<Result> {
  const errors: unknown[] = [];
  const result = start(({ error }) => void errors.push(error));
  await result.consumeStream();
  if (errors.length > 0) throw errors[0];
  return result;
}

const user = (content: string) => ({ role: "user" as const, content });

/** The AI SDK 7 over one of its models. */
export const aiSdk7Loop =
  (make: Make<ai.LanguageModel>): Converse =>
  (target, prompts) => {
    const { tool, jsonSchema, stepCountIs, generateText, streamText } = ai;
    const model = make(target);
    const set = toolSet(({ description, parameters, run }) =>
      tool({ description, inputSchema: jsonSchema<unknown>(parameters), execute: run }),
    );
    const settings = { model, tools: set, stopWhen: stepCountIs(maxSteps), maxRetries: 0 };
    return converse<ai.ModelMessage>(prompts, user, async (messages) => {
      if (!target.stream) {
        const { text, responseMessages } = await generateText({ ...settings, messages });
        return { text, added: responseMessages };
      }
      const result = await readToEnd((onError) => streamText({ ...settings, messages, onError }));
      return { text: await result.text, added: await result.responseMessages };
    });
  };

/** The AI SDK 6 over one of its models. */
const aiSdk6Loop =
  (make: Make<ai6.LanguageModel>): Converse =>
  (target, prompts) => {
    const { tool, jsonSchema, stepCountIs, generateText, streamText } = ai6;
    const model = make(target);
    const set = toolSet(({ description, parameters, run }) =>
      tool({ description, inputSchema: jsonSchema<unknown>(parameters), execute: run }),
    );
    const settings = { model, tools: set, stopWhen: stepCountIs(maxSteps), maxRetries: 0 };
    return converse<ai6.ModelMessage>(prompts, user, async (messages) => {
      if (!target.stream) {
        const { text, response } = await generateText({ ...settings, messages });
        return { text, added: response.messages };
      }
      const result = await readToEnd((onError) => streamText({ ...settings, messages, onError }));
      return { text: await result.text, added: (await result.response).messages };
    });
  };

/** The AI SDK 5 over one of its models. */
const aiSdk5Loop =
  (make: Make<ai5.LanguageModel>): Converse =>
  (target, prompts) => {
    const { tool, jsonSchema, stepCountIs, generateText, streamText } = ai5;
    const model = make(target);
    const set = toolSet(({ description, parameters, run }) =>
      tool({ description, inputSchema: jsonSchema<unknown>(parameters), execute: run }),
    );
    const settings = { model, tools: set, stopWhen: stepCountIs(maxSteps), maxRetries: 0 };
    return converse<ai5.ModelMessage>(prompts, user, async (messages) => {
      if (!target.stream) {
        const { text, response } = await generateText({ ...settings, messages });
        return { text, added: response.messages };
      }
      const result = await readToEnd((onError) => streamText({ ...settings, messages, onError }));
      return { text: await result.text, added: (await result.response).messages };
    });
  };

// The library returns Gemini's signatures only under this name.
const name = "google";

/** Every way to call a gateway with the AI SDK 5, 6 and 7. */
export const aiSdkLoops = {
  "ai 5, @ai-sdk/openai Responses": aiSdk5Loop((to) => createOpenAI2(to)(to.model)),
  "ai 5, @ai-sdk/openai chat": aiSdk5Loop((to) => createOpenAI2(to).chat(to.model)),
  "ai 5, @ai-sdk/openai-compatible": aiSdk5Loop((to) =>
    createOpenAICompatible1({ name, ...to })(to.model),
  ),
  "ai 6, @ai-sdk/openai Responses": aiSdk6Loop((to) => createOpenAI3(to)(to.model)),
  "ai 6, @ai-sdk/openai chat": aiSdk6Loop((to) => createOpenAI3(to).chat(to.model)),
  "ai 6, @ai-sdk/openai-compatible": aiSdk6Loop((to) =>
    createOpenAICompatible2({ name, ...to })(to.model),
  ),
  "ai 7, @ai-sdk/openai Responses": aiSdk7Loop((to) => createOpenAI(to)(to.model)),
  "ai 7, @ai-sdk/openai chat": aiSdk7Loop((to) => createOpenAI(to).chat(to.model)),
  "ai 7, @ai-sdk/openai-compatible": aiSdk7Loop((to) =>
    createOpenAICompatible({ name, ...to })(to.model),
  ),
};
