import type { CompletionEvent, FinishReason } from "../../domain/completion-event.ts";
import type { Usage } from "../../domain/usage.ts";
import { errorBody, type GatewayError } from "../../errors/gateway-error.ts";
import type { ChatCompletionHead } from "./head.ts";
import { usageObject } from "./usage-object.ts";

/** Writes one streamed answer as `chat.completion.chunk` events (sections 2.3 and 6.1). */
export interface ChunkWriter {
  /** A `data:` line per event the client sees; empty when it sees none of them. */
  write(events: readonly CompletionEvent[]): string;
  /** The finish chunk, the usage chunk where it was asked for, and `[DONE]`. */
  finish(reason: FinishReason, usage: Usage): string;
  /** The error, then `[DONE]`: no finish reason is invented. */
  fail(error: GatewayError): string;
}

const done = "data: [DONE]\n\n";
const roleDelta = '{"role":"assistant","content":"","refusal":null}';

export function createChunkWriter(
  head: ChatCompletionHead & { readonly includeUsage: boolean },
): ChunkWriter {
  // Everything around a delta is the same in every chunk, so it is serialised once.
  const common = JSON.stringify({
    id: head.id,
    object: "chat.completion.chunk",
    created: head.created,
    model: head.model,
  }).slice(0, -1);
  const ids = JSON.stringify({ session_id: head.sessionId, turn_id: head.turnId }).slice(1);
  const before = `data: ${common},"choices":[{"index":0,"delta":`;
  const after = `}],"usage":null,${ids}\n\n`;
  const plain = `,"logprobs":null,"finish_reason":null${after}`;
  let hasRole = false;

  const withRole = (text: string): string => {
    if (hasRole || text === "") return text;
    hasRole = true;
    return before + roleDelta + plain + text;
  };

  const chunkOf = (event: CompletionEvent): string => {
    if (event.type === "logprobs") {
      const logprobs = JSON.stringify(event.logprobs);
      return `${before}{},"logprobs":${logprobs},"finish_reason":null${after}`;
    }
    const delta = deltaOf(event);
    return delta === "" ? "" : before + delta + plain;
  };

  return {
    write(events) {
      let text = "";
      for (const event of events) text += chunkOf(event);
      return withRole(text);
    },
    finish(reason, usage) {
      const last = `${before}{},"logprobs":null,"finish_reason":"${reason}"${after}`;
      const totals = head.includeUsage
        ? `data: ${common},"choices":[],"usage":${JSON.stringify(usageObject(usage))},${ids}\n\n`
        : "";
      return withRole(last) + totals + done;
    },
    fail: (error) => `data: ${errorBody(error)}\n\n${done}`,
  };
}

/** The JSON of an event's delta; empty when the client sees nothing of it. */
function deltaOf(event: CompletionEvent): string {
  switch (event.type) {
    case "text-delta":
      return textDelta("content", event.text);
    case "reasoning-delta":
      return textDelta("reasoning_content", event.text);
    case "refusal-delta":
      return textDelta("refusal", event.text);
    case "tool-call-started": {
      const { index, id, name } = event;
      return JSON.stringify({
        tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }],
      });
    }
    case "tool-call-delta":
      if (event.arguments === "") return "";
      return `{"tool_calls":[{"index":${event.index},"function":{"arguments":${JSON.stringify(event.arguments)}}}]}`;
    default:
      return "";
  }
}

function textDelta(name: string, text: string): string {
  return text === "" ? "" : `{"${name}":${JSON.stringify(text)}}`;
}
