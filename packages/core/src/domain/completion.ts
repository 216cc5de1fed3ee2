import type { Json } from "../kernel/stable-json.ts";
import type { CompletionEvent, FinishReason, UsageReport } from "./completion-event.ts";
import type { AssistantMessage, ToolCall } from "./message.ts";

/** A whole answer: the fold of its events. */
export interface Completion {
  readonly text: string | null;
  readonly reasoning: string | null;
  readonly refusal: string | null;
  readonly toolCalls: readonly ToolCall[];
  /** One entry per `logprobs` event. */
  readonly logprobs: readonly Json[];
  /** Null for an answer that did not finish. */
  readonly finishReason: FinishReason | null;
  /** The last value of each field the provider reported. */
  readonly usage: UsageReport;
}

/** Collects events into a completion; may be asked for what there is so far at any time. */
export interface CompletionFold {
  add(event: CompletionEvent): void;
  completion(): Completion;
  /** UTF-8 bytes of everything the model has written so far. */
  outputBytes(): number;
}

export function createFold(): CompletionFold {
  const text: string[] = [];
  const reasoning: string[] = [];
  const refusal: string[] = [];
  const calls = new Map<number, { id: string; name: string; arguments: string[] }>();
  const logprobs: Json[] = [];
  let finishReason: FinishReason | null = null;
  let usage: UsageReport = {};
  let bytes = 0;

  const collect = (into: string[], part: string): void => {
    into.push(part);
    bytes += Buffer.byteLength(part);
  };

  return {
    add(event) {
      switch (event.type) {
        case "text-delta":
          return collect(text, event.text);
        case "reasoning-delta":
          return collect(reasoning, event.text);
        case "refusal-delta":
          return collect(refusal, event.text);
        case "tool-call-started":
          calls.set(event.index, { id: event.id, name: event.name, arguments: [] });
          bytes += Buffer.byteLength(event.name);
          return;
        case "tool-call-delta":
          return collect(calls.get(event.index)?.arguments ?? [], event.arguments);
        case "logprobs":
          logprobs.push(event.logprobs);
          return;
        case "usage":
          usage = { ...usage, ...event.usage };
          return;
        case "finish":
          finishReason = event.reason;
      }
    },
    completion: () => ({
      text: joined(text),
      reasoning: joined(reasoning),
      refusal: joined(refusal),
      toolCalls: [...calls.entries()]
        .sort(([a], [b]) => a - b)
        .map(([, call]) => ({
          id: call.id,
          type: "function",
          function: { name: call.name, arguments: call.arguments.join("") },
        })),
      logprobs,
      finishReason,
      usage,
    }),
    outputBytes: () => bytes,
  };
}

function joined(parts: readonly string[]): string | null {
  return parts.length === 0 ? null : parts.join("");
}

/** The message a client sends back as history: the answer without its reasoning. */
export function replyMessage(completion: Completion): AssistantMessage {
  return {
    role: "assistant",
    content: completion.text,
    ...(completion.refusal === null ? {} : { refusal: completion.refusal }),
    ...(completion.toolCalls.length === 0 ? {} : { tool_calls: completion.toolCalls }),
  };
}
