import type { Duration } from "@tollgate/core";
import type { CompletionEvent, FinishReason, UsageReport } from "@tollgate/core/provider";

/** What a scripted provider answers. Pieces of a list arrive one by one. */
export interface ScriptedAnswer {
  readonly text?: string | readonly string[];
  readonly reasoning?: string | readonly string[];
  readonly refusal?: string | readonly string[];
  readonly toolCalls?: readonly ScriptedToolCall[];
  /** Default 10 prompt and 5 completion tokens; null for a provider that reports nothing. */
  readonly usage?: UsageReport | null;
  /** Default `tool_calls` where there are any, else `stop`; null for an answer that is cut before its end. */
  readonly finishReason?: FinishReason | null;
  /** Waits, on the test's clock, before the first event and between two. */
  readonly delay?: Duration;
  readonly pace?: Duration;
  /** What goes wrong after so many events of the answer (default 0: before the first). */
  readonly failure?: { readonly error: Error; readonly afterEvents?: number };
}

/** A tool call of a scripted answer. */
export interface ScriptedToolCall {
  readonly name: string;
  /** JSON text, as the model would write it. */
  readonly arguments: string | readonly string[];
  /** Default `call_1`, `call_2`, …; 1 is the answer's first. */
  readonly id?: string;
}

const defaultUsage: UsageReport = { promptTokens: 10, completionTokens: 5 };

/** The events of an answer, `request-sent` aside. */
export function eventsOf(answer: ScriptedAnswer): readonly CompletionEvent[] {
  const { reasoning, refusal, toolCalls = [], usage = defaultUsage } = answer;
  const { finishReason = toolCalls.length > 0 ? "tool_calls" : "stop" } = answer;
  return [
    { type: "answer-started", providerRequestId: "scripted" },
    ...pieces(reasoning).map((text) => ({ type: "reasoning-delta" as const, text })),
    ...pieces(answer.text).map((text) => ({ type: "text-delta" as const, text })),
    ...pieces(refusal).map((text) => ({ type: "refusal-delta" as const, text })),
    ...toolCalls.flatMap(callEvents),
    ...(usage === null ? [] : [{ type: "usage" as const, usage }]),
    ...(finishReason === null ? [] : [{ type: "finish" as const, reason: finishReason }]),
  ];
}

function callEvents(call: ScriptedToolCall, index: number): readonly CompletionEvent[] {
  const { name, id = `call_${index + 1}` } = call;
  return [
    { type: "tool-call-started", index, id, name },
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
