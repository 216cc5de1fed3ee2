import type { Json } from "../kernel/stable-json.ts";
import type { CompletionEvent, FinishReason, UsageReport } from "./completion-event.ts";
import type { AssistantMessage, ToolCall } from "./message.ts";

/** A stretch of an answer: what the model said in one go, or one call it made, in the order they began. */
export type CompletionPart =
  | { readonly type: "text" | "reasoning" | "refusal"; readonly text: string }
  | { readonly type: "tool-call"; readonly call: ToolCall };

/** A whole answer: the fold of its events. */
export interface Completion {
  readonly parts: readonly CompletionPart[];
  /** One entry per `logprobs` event. */
  readonly logprobs: readonly Json[];
  /** Null for an answer that did not finish. */
  readonly finishReason: FinishReason | null;
  /** The last value of each field the provider reported. */
  readonly usage: UsageReport;
}

/** Collects events into a completion. */
export interface CompletionFold {
  add(event: CompletionEvent): void;
  completion(): Completion;
  /** Null until the model said why it stopped. */
  finishReason(): FinishReason | null;
  /** The last value of each field the provider has reported so far. */
  usage(): UsageReport;
  /** UTF-8 bytes of everything the model has written so far. */
  outputBytes(): number;
}

type OpenPart =
  | { readonly type: "text" | "reasoning" | "refusal"; text: string }
  | {
      readonly type: "tool-call";
      readonly index: number;
      readonly id: string;
      readonly name: string;
      arguments: string;
    };

/** What is said without a pause is one part: another kind of text, or a tool call, begins the next. */
export function createFold(): CompletionFold {
  const parts: OpenPart[] = [];
  const logprobs: Json[] = [];
  let finishReason: FinishReason | null = null;
  let usage: UsageReport = {};
  let bytes = 0;

  function say(type: "text" | "reasoning" | "refusal", text: string): void {
    if (text === "") return;
    bytes += Buffer.byteLength(text);
    const last = parts.at(-1);
    if (last?.type === type) last.text += text;
    else parts.push({ type, text });
  }

  return {
    add(event) {
      switch (event.type) {
        case "text-delta":
          return say("text", event.text);
        case "reasoning-delta":
          return say("reasoning", event.text);
        case "refusal-delta":
          return say("refusal", event.text);
        case "tool-call-started":
          bytes += Buffer.byteLength(event.name);
          parts.push({
            type: "tool-call",
            index: event.index,
            id: event.id,
            name: event.name,
            arguments: "",
          });
          return;
        case "tool-call-delta": {
          bytes += Buffer.byteLength(event.arguments);
          const call = parts.find(
            (part) => part.type === "tool-call" && part.index === event.index,
          );
          if (call?.type === "tool-call") call.arguments += event.arguments;
          return;
        }
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
    completion: () => ({ parts: parts.map(closed), logprobs, finishReason, usage }),
    finishReason: () => finishReason,
    usage: () => usage,
    outputBytes: () => bytes,
  };
}

function closed(part: OpenPart): CompletionPart {
  if (part.type !== "tool-call") return { type: part.type, text: part.text };
  const { id, name } = part;
  return {
    type: "tool-call",
    call: { id, type: "function", function: { name, arguments: part.arguments } },
  };
}

/** Everything said of one kind, or null when nothing was. */
export function spoken(
  { parts }: Completion,
  type: "text" | "reasoning" | "refusal",
): string | null {
  const said = parts.flatMap((part) => (part.type === type ? part.text : []));
  return said.length === 0 ? null : said.join("");
}

/** The tool calls, in the order they began. */
export function toolCallsOf({ parts }: Completion): readonly ToolCall[] {
  return parts.flatMap((part) => (part.type === "tool-call" ? part.call : []));
}

/** The one message a Chat Completions client sends back as history: the answer without its reasoning. */
export function replyMessage(completion: Completion): AssistantMessage {
  const refusal = spoken(completion, "refusal");
  const toolCalls = toolCallsOf(completion);
  return {
    role: "assistant",
    content: spoken(completion, "text"),
    ...(refusal === null ? {} : { refusal }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  };
}
