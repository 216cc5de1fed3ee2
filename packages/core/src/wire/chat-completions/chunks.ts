import type { CompletionEvent, FinishReason } from "../../domain/completion-event.ts";
import type { StateFields } from "../../domain/provider-state.ts";
import type { Usage } from "../../domain/usage.ts";
import { errorBody, type GatewayError } from "../../errors/gateway-error.ts";
import type { ChatCompletionHead } from "./head.ts";
import { usageObject } from "./usage-object.ts";

const done = "data: [DONE]\n\n";
const roleDelta = '{"role":"assistant","content":"","refusal":null}';

/** Writes one streamed answer as `chat.completion.chunk` events (sections 2.3 and 6.1). */
export class ChunkWriter {
  readonly #head: ChatCompletionHead & { readonly includeUsage: boolean };
  #begun: Frame | null = null;
  #hasRole = false;

  constructor(head: ChatCompletionHead & { readonly includeUsage: boolean }) {
    this.#head = head;
  }

  /** A `data:` line for each event that the client sees. Empty if it sees none of them. */
  write(events: readonly CompletionEvent[]): string {
    let chunks = "";
    for (let at = 0; at < events.length; at++) {
      const event = events[at];
      const next = events[at + 1];
      if (event === undefined) continue;
      // Clients read a call's state only from its first delta.
      if (event.type === "tool-call-started" && isStateOf(next, event.index)) {
        chunks += this.#frame.delta(callDelta(event, next.fields));
        at++;
      } else chunks += this.#chunkOf(event);
    }
    return this.#withRole(chunks);
  }

  /** The finish chunk, the usage chunk if requested, and `[DONE]`. Both chunks name the tier that served the answer. */
  finish(reason: FinishReason, usage: Usage, serviceTier?: string): string {
    const frame = this.#frame;
    const tier = serviceTier === undefined ? "" : `"service_tier":${JSON.stringify(serviceTier)},`;
    const last = this.#withRole(frame.choice("{}", "null", `"${reason}"`, tier));
    return last + (this.#head.includeUsage ? frame.totals(usage, tier) : "") + done;
  }

  /** The error, then `[DONE]`, without a finish reason. */
  fail(error: GatewayError): string {
    return `data: ${errorBody(error)}\n\n${done}`;
  }

  /** The common members of all chunks, known when the first one is written. */
  get #frame(): Frame {
    this.#begun ??= new Frame(this.#head);
    return this.#begun;
  }

  #withRole(chunks: string): string {
    if (this.#hasRole || chunks === "") return chunks;
    this.#hasRole = true;
    return this.#frame.delta(roleDelta) + chunks;
  }

  #chunkOf(event: CompletionEvent): string {
    if (event.type === "logprobs")
      return this.#frame.choice("{}", JSON.stringify(event.logprobs), "null");
    const delta = deltaOf(event);
    return delta === "" ? "" : this.#frame.delta(delta);
  }
}

/** Writes chunks around their common members, which are serialized once. */
class Frame {
  readonly #common: string;
  readonly #ids: string;
  readonly #before: string;
  readonly #plain: string;

  constructor({ id, created, model, sessionId, turnId, systemFingerprint }: ChatCompletionHead) {
    const system_fingerprint = systemFingerprint();
    const object = "chat.completion.chunk";
    this.#common = JSON.stringify({ id, object, created, model, system_fingerprint }).slice(0, -1);
    this.#ids = JSON.stringify({ session_id: sessionId, turn_id: turnId }).slice(1);
    this.#before = `data: ${this.#common},"choices":[{"index":0,"delta":`;
    this.#plain = `,"logprobs":null,"finish_reason":null${this.#after("")}`;
  }

  delta(delta: string): string {
    return this.#before + delta + this.#plain;
  }

  /** `members` are further members of the chunk, each followed by a comma. */
  choice(delta: string, logprobs: string, finishReason: string, members = ""): string {
    return `${this.#before}${delta},"logprobs":${logprobs},"finish_reason":${finishReason}${this.#after(members)}`;
  }

  totals(usage: Usage, members: string): string {
    return `data: ${this.#common},"choices":[],"usage":${JSON.stringify(usageObject(usage))},${members}${this.#ids}\n\n`;
  }

  #after(members: string): string {
    return `}],"usage":null,${members}${this.#ids}\n\n`;
  }
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
