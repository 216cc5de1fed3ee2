import { hash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import {
  type CompletionEvent,
  type ListedModel,
  modelsOf,
  type Provider,
  type ProviderCall,
  ProviderError,
} from "@tollgate/core/provider";
import { type Schema, tryRead, wholeNumber, z } from "@tollgate/core/schemas";
import { type SimAnswer, simAnswer, usageOf } from "./sim-answer.ts";

/** Options of the built-in model. */
export interface SimOptions {
  /** Milliseconds between words of a streamed answer. Default 0, without a timer. */
  readonly pace?: number;
}

/** The schema of the options of `simProvider`. */
export const simSchema: Schema<SimOptions> = z.strictObject({
  pace: z.exactOptional(wholeNumber(0)),
});

const echo: ListedModel = {
  input: "0.10",
  cachedInput: "0.01",
  output: "0.40",
  maxOutputTokens: 4_096,
};

/** The preview is the same model under another name, for policies. */
const models: Readonly<Record<string, ListedModel>> = {
  "tollgate/echo": echo,
  "tollgate/echo-preview": echo,
};

/**
 * A model that needs no account: `tollgate/echo`. `tollgate/echo-preview` is the same model under a name that a policy can
 * forbid. Equal requests get equal answers. It repeats the last user message. It calls an offered tool if the user
 * mentions its name or `tool_choice` demands it, and then answers from the tool's result. It fills in a JSON Schema if
 * the request has one. Tokens are words. Any other model is a 404.
 */
export function simProvider(options: SimOptions = {}): Provider {
  const read = tryRead(simSchema, options, { noun: "option" });
  const pace = read.value?.pace ?? 0;
  const problems = read.problems.map(({ message }) => message);
  return {
    contract: 1,
    connection: "platform",
    ...modelsOf({ models }),
    problems,
    complete: (call) => complete(call, pace),
    async close() {},
  };
}

async function* complete(
  call: ProviderCall,
  pace: number,
): AsyncGenerator<readonly CompletionEvent[]> {
  const { request, signal } = call;
  const body = JSON.stringify({ model: call.upstreamName, stream: call.stream, ...request });
  yield [{ type: "request-sent", host: "sim", bodySha256: hash("sha256", body) }];
  if (!(call.model in models)) throw unknownModel(call.model);

  const answer = simAnswer(request);
  const started: CompletionEvent = { type: "answer-started", providerModel: call.model };
  const events = [started, ...contentEvents(answer)];
  const last: readonly CompletionEvent[] = [
    { type: "usage", usage: usageOf(request, answer) },
    { type: "finish", reason: answer.finishReason },
  ];
  if (!call.stream) {
    if (!signal.aborted) yield [...events, ...last];
    return;
  }
  for (const event of events) {
    if (pace > 0) await wait(pace, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    yield [event];
  }
  yield last;
}

function contentEvents({ words, toolCall }: SimAnswer): readonly CompletionEvent[] {
  if (toolCall === null) return words.map((text) => ({ type: "text-delta", text }));
  return [
    { type: "tool-call-started", index: 0, ...toolCall },
    ...words.map((part) => ({ type: "tool-call-delta" as const, index: 0, arguments: part })),
  ];
}

function unknownModel(model: string): ProviderError {
  return new ProviderError(`The sim gateway has no model ${JSON.stringify(model)}.`, {
    reason: "status_404",
    delivery: "answered",
    status: 404,
  });
}
