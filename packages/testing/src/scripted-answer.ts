import type { Duration } from "@tollgate/core";
import type {
  CompletionEvent,
  EmbeddingRequest,
  EmbeddingVector,
  FinishReason,
  ReasoningField,
  StateFields,
  UsageReport,
} from "@tollgate/core/provider";

/** An answer of a scripted provider. The items of a list arrive one by one. */
export interface ScriptedAnswer {
  readonly text?: string | readonly string[];
  readonly reasoning?: string | readonly string[];
  /** The field in which the client must send the reasoning back. Default: it needn't send it back. */
  readonly reasoningField?: ReasoningField;
  /** State that the client must send back with the message, such as signed thinking. */
  readonly state?: StateFields;
  readonly refusal?: string | readonly string[];
  readonly toolCalls?: readonly ScriptedToolCall[];
  /** The vectors of an answer to an embeddings request. Default: one of two values for each input. */
  readonly embeddings?: readonly EmbeddingVector[];
  /** Default: 10 prompt and 5 completion tokens, or 0 for embeddings. Null for a provider that reports no usage. */
  readonly usage?: UsageReport | null;
  /** Default: `tool_calls` with tool calls, else `stop`. Null for an answer that is cut off. */
  readonly finishReason?: FinishReason | null;
  /** The wait on the test's clock before the first event (`delay`) and between events (`pace`). */
  readonly delay?: Duration;
  readonly pace?: Duration;
  /** A failure after this many events of the answer. Default 0: before the first. */
  readonly failure?: { readonly error: Error; readonly afterEvents?: number };
}

/** A tool call of a scripted answer. */
export interface ScriptedToolCall {
  readonly name: string;
  /** JSON text, as the model would write it. */
  readonly arguments: string | readonly string[];
  /** Default `call_1`, `call_2`, …; 1 is the answer's first. */
  readonly id?: string;
  /** State that the client must send back with the call, such as a signature. */
  readonly state?: StateFields;
}

const defaultUsage: UsageReport = { promptTokens: 10, completionTokens: 5 };

/** Returns the events of an answer, except `request-sent`. */
export function eventsOf(answer: ScriptedAnswer): readonly CompletionEvent[] {
  const { reasoning, reasoningField: field, state, refusal, toolCalls = [] } = answer;
  const { usage = defaultUsage } = answer;
  const { finishReason = toolCalls.length > 0 ? "tool_calls" : "stop" } = answer;
  return [
    { type: "answer-started", providerRequestId: "scripted" },
    ...pieces(reasoning).map((text) => ({
      type: "reasoning-delta" as const,
      text,
      ...(field && { field }),
    })),
    ...(state ? [{ type: "state" as const, fields: state }] : []),
    ...pieces(answer.text).map((text) => ({ type: "text-delta" as const, text })),
    ...pieces(refusal).map((text) => ({ type: "refusal-delta" as const, text })),
    ...toolCalls.flatMap(callEvents),
    ...(usage === null ? [] : [{ type: "usage" as const, usage }]),
    ...(finishReason === null ? [] : [{ type: "finish" as const, reason: finishReason }]),
  ];
}

const embeddingUsage: UsageReport = { promptTokens: 10, completionTokens: 0 };

/** Returns the events of an answer to an embeddings request, except `request-sent`. */
export function embeddingEventsOf(
  { embeddings, usage = embeddingUsage, finishReason = "stop" }: ScriptedAnswer,
  { inputs }: EmbeddingRequest,
): readonly CompletionEvent[] {
  const vectors =
    embeddings ?? Array.from({ length: inputs.length }, (_, index) => [index + 1, 0.5]);
  return [
    { type: "answer-started", providerRequestId: "scripted" },
    ...vectors.map((vector, index) => ({ type: "embedding" as const, index, vector })),
    ...(usage === null ? [] : [{ type: "usage" as const, usage }]),
    ...(finishReason === null ? [] : [{ type: "finish" as const, reason: finishReason }]),
  ];
}

function callEvents(call: ScriptedToolCall, index: number): readonly CompletionEvent[] {
  const { name, id = `call_${index + 1}` } = call;
  return [
    { type: "tool-call-started", index, id, name },
    ...(call.state ? [{ type: "state" as const, index, fields: call.state }] : []),
    ...pieces(call.arguments).map((part) => ({
      type: "tool-call-delta" as const,
      index,
      arguments: part,
    })),
  ];
}

function pieces(text: string | readonly string[] = []): readonly string[] {
  return [text].flat();
}
