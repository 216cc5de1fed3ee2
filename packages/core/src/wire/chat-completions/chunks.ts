import type { CompletionEvent, FinishReason } from "../../domain/completion-event.ts";
import type { StateFields } from "../../domain/provider-state.ts";
import type { Usage } from "../../domain/usage.ts";
import { errorBody, type GatewayError } from "../../errors/gateway-error.ts";
import type { ChatCompletionHead } from "./head.ts";
import { usageObject } from "./usage-object.ts";

/** Writes one streamed answer as `chat.completion.chunk` events (sections 2.3 and 6.1). */
export interface ChunkWriter {
  /** A `data:` line for each event that the client sees. Empty if it sees none of them. */
  write(events: readonly CompletionEvent[]): string;
  /** The finish chunk, the usage chunk if requested, and `[DONE]`. Both chunks name the tier that served the answer. */
  finish(reason: FinishReason, usage: Usage, serviceTier?: string): string;
  /** The error, then `[DONE]`, without a finish reason. */
  fail(error: GatewayError): string;
}

const done = "data: [DONE]\n\n";
const roleDelta = '{"role":"assistant","content":"","refusal":null}';

export function createChunkWriter(
  head: ChatCompletionHead & { readonly includeUsage: boolean },
): ChunkWriter {
  let begun: Frame | null = null;
  let hasRole = false;

  /** The common members of all chunks, known when the first one is written. */
  const frame = (): Frame => {
    begun ??= frameOf(head);
    return begun;
  };

  const withRole = (chunks: string): string => {
    if (hasRole || chunks === "") return chunks;
    hasRole = true;
    return frame().delta(roleDelta) + chunks;
  };

  const chunkOf = (event: CompletionEvent): string => {
    if (event.type === "logprobs")
      return frame().choice("{}", JSON.stringify(event.logprobs), "null");
    const delta = deltaOf(event);
    return delta === "" ? "" : frame().delta(delta);
  };

  return {
    write(events) {
      let chunks = "";
      for (let at = 0; at < events.length; at++) {
        const event = events[at];
        const next = events[at + 1];
        if (event === undefined) continue;
        // Clients read a call's state only from its first delta.
        if (event.type === "tool-call-started" && isStateOf(next, event.index)) {
          chunks += frame().delta(callDelta(event, next.fields));
          at++;
        } else chunks += chunkOf(event);
      }
      return withRole(chunks);
    },
    finish(reason, usage, serviceTier) {
      const tier =
        serviceTier === undefined ? "" : `"service_tier":${JSON.stringify(serviceTier)},`;
      const last = withRole(frame().choice("{}", "null", `"${reason}"`, tier));
      return last + (head.includeUsage ? frame().totals(usage, tier) : "") + done;
    },
    fail: (error) => `data: ${errorBody(error)}\n\n${done}`,
  };
}

/** Writes chunks around their common members, which are serialized once. */
interface Frame {
  delta(delta: string): string;
  /** `members` are further members of the chunk, each followed by a comma. */
  choice(delta: string, logprobs: string, finishReason: string, members?: string): string;
  totals(usage: Usage, members: string): string;
}

function frameOf(head: ChatCompletionHead): Frame {
  const { id, created, model, sessionId, turnId } = head;
  const system_fingerprint = head.systemFingerprint();
  const object = "chat.completion.chunk";
  const common = JSON.stringify({ id, object, created, model, system_fingerprint }).slice(0, -1);
  const ids = JSON.stringify({ session_id: sessionId, turn_id: turnId }).slice(1);
  const before = `data: ${common},"choices":[{"index":0,"delta":`;
  const after = (members: string): string => `}],"usage":null,${members}${ids}\n\n`;
  const plain = `,"logprobs":null,"finish_reason":null${after("")}`;
  return {
    delta: (delta) => before + delta + plain,
    choice: (delta, logprobs, finishReason, members = "") =>
      `${before}${delta},"logprobs":${logprobs},"finish_reason":${finishReason}${after(members)}`,
    totals: (usage, members) =>
      `data: ${common},"choices":[],"usage":${JSON.stringify(usageObject(usage))},${members}${ids}\n\n`,
  };
}

/** The JSON of an event's delta. Empty if the client sees nothing of the event. */
function deltaOf(event: CompletionEvent): string {
  switch (event.type) {
    case "text-delta":
      return textDelta("content", event.text);
    case "reasoning-delta":
      return textDelta(event.field ?? "reasoning_content", event.text);
    case "refusal-delta":
      return textDelta("refusal", event.text);
    case "tool-call-started":
      return callDelta(event, {});
    case "state": {
      const { index, fields } = event;
      return JSON.stringify(index === undefined ? fields : { tool_calls: [{ ...fields, index }] });
    }
    case "shown":
      return JSON.stringify({ [event.name]: event.entries });
    case "tool-call-delta":
      if (event.arguments === "") return "";
      return `{"tool_calls":[{"index":${event.index},"function":{"arguments":${JSON.stringify(event.arguments)}}}]}`;
    default:
      return "";
  }
}

type CallStarted = Extract<CompletionEvent, { type: "tool-call-started" }>;
type State = Extract<CompletionEvent, { type: "state" }>;

function isStateOf(event: CompletionEvent | undefined, index: number): event is State {
  return event?.type === "state" && event.index === index;
}

function callDelta({ index, id, name }: CallStarted, fields: StateFields): string {
  const started = { index, id, type: "function", function: { name, arguments: "" } };
  return JSON.stringify({ tool_calls: [{ ...fields, ...started }] });
}

function textDelta(name: string, text: string): string {
  return text === "" ? "" : `{"${name}":${JSON.stringify(text)}}`;
}
