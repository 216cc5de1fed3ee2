import { hash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import {
  type CompletionEvent,
  type EmbeddingCall,
  type EmbeddingRequest,
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
 * the request has one. It returns embeddings, which say nothing about their texts. Tokens are words. Any other model is a
 * 404.
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
    embed,
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

async function* embed({
  model,
  upstreamName,
  request,
}: EmbeddingCall): AsyncGenerator<readonly CompletionEvent[]> {
  const body = JSON.stringify({ model: upstreamName, ...request });
  yield [{ type: "request-sent", host: "sim", bodySha256: hash("sha256", body) }];
  if (!(model in models)) throw unknownModel(model);
  const vectors = simVectors(request);
  yield [
    { type: "answer-started", providerModel: model },
    ...vectors.map((vector, index) => ({ type: "embedding" as const, index, vector })),
    { type: "usage", usage: { promptTokens: tokensIn(request), completionTokens: 0 } },
    { type: "finish", reason: "stop" },
  ];
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

const defaultDimensions = 8;
const bytesPerHash = 32;

/** Returns a vector of length 1 for each input. Equal inputs have equal vectors. */
function simVectors({
  inputs,
  dimensions = defaultDimensions,
}: EmbeddingRequest): readonly (readonly number[])[] {
  return inputs.map((input) => unitVector(JSON.stringify(input), dimensions));
}

/** Returns the tokens of a request: its token ids, or the words of its texts. */
function tokensIn({ inputs }: EmbeddingRequest): number {
  let tokens = 0;
  for (const input of inputs)
    tokens += typeof input === "string" ? (input.match(/\S+/gu)?.length ?? 0) : input.length;
  return tokens;
}

function unitVector(text: string, dimensions: number): readonly number[] {
  const hashes = Array.from({ length: Math.ceil(dimensions / bytesPerHash) }, (_, at) =>
    hash("sha256", `${at} ${text}`, "buffer"),
  );
  // No value is 0, so the length isn't either.
  const values = [...Buffer.concat(hashes).subarray(0, dimensions)].map((byte) => byte - 127.5);
  const length = Math.hypot(...values);
  return values.map((value) => value / length);
}
