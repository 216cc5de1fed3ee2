import type { Completion } from "../../domain/completion.ts";
import type { CompletionEvent, FinishReason } from "../../domain/completion-event.ts";
import type { Usage } from "../../domain/usage.ts";
import type { GatewayError } from "../../errors/gateway-error.ts";
import { JsonScan } from "../../kernel/measure-json.ts";
import { messagesErrorBody } from "./error-body.ts";
import {
  caller,
  emptyMessage,
  type MessageHead,
  type SignedBlock,
  signedBlocks,
  stopOf,
  usageObject,
} from "./message-object.ts";

/** Writes one streamed answer as events of the Messages API. */
export interface MessageEventWriter {
  /** The events that the client sees, after `message_start` if they are the first. */
  write(events: readonly CompletionEvent[]): string;
  /** Ends open blocks. Then `message_delta` and `message_stop`. */
  finish(completion: Completion, usage: Usage, finishReason: FinishReason): string;
  /** An `error` event, and nothing more. */
  fail(error: GatewayError): string;
}

/** Keeps a silent connection open. Clients ignore it. */
export const messagesPing = 'event: ping\ndata: {"type":"ping"}\n\n';

const end = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';

/** A block that was started and not stopped. */
type OpenBlock = { readonly index: number } & (
  | { readonly kind: "text" | "refusal" | "reasoning" }
  | { readonly kind: "thinking"; readonly place: number; isSigned: boolean }
  | { readonly kind: "call"; readonly call: number; readonly input: CallInput }
);

type Speech = Extract<
  CompletionEvent,
  { type: "text-delta" | "refusal-delta" | "reasoning-delta" }
>;
type CallStarted = Extract<CompletionEvent, { type: "tool-call-started" }>;

/** The facts about an answer that its events show. */
export interface StreamedMessage {
  readonly head: MessageHead;
  readonly requestId: string;
  /** The input, as far as it is known when the first event is written. */
  readonly inputSoFar: () => Usage;
}

export function createMessageEventWriter({
  head,
  requestId,
  inputSoFar,
}: StreamedMessage): MessageEventWriter {
  const blocks = new BlockWriter();
  let isStarted = false;

  const start = (): string => {
    if (isStarted) return "";
    isStarted = true;
    return event("message_start", `"message":${JSON.stringify(emptyMessage(head, inputSoFar()))}`);
  };

  return {
    write(events) {
      const written = blocks.write(events);
      return written === "" ? "" : start() + written;
    },
    finish(completion, usage, finishReason) {
      const delta = { ...stopOf(completion, finishReason), container: null };
      const total = usageObject(usage, completion.usage.serviceTier);
      const members = `"delta":${JSON.stringify(delta)},"usage":${JSON.stringify(total)}`;
      return `${start()}${blocks.close()}${event("message_delta", members)}${end}`;
    },
    fail: (error) => `event: error\ndata: ${messagesErrorBody(error, requestId)}\n\n`,
  };
}

/** Writes the blocks of an answer one after the other. Only calls whose arguments may still continue stay open meanwhile. */
class BlockWriter {
  #next = 0;
  readonly #open: OpenBlock[] = [];
  /** Whether the provider signs its thinking. Then the blocks show it, and not the reasoning. */
  #isSigning = false;

  write(events: readonly CompletionEvent[]): string {
    this.#isSigning ||= events.some((event) => thinkingIn(event).length > 0);
    let written = "";
    for (const event of events) written += this.#event(event);
    return written;
  }

  /** Stops every open block, or all except calls whose arguments may still continue. */
  close(all = true): string {
    let written = "";
    for (const block of this.#open.splice(0)) {
      const input = block.kind === "call" ? block.input : null;
      if (all || input === null || input.isWhole()) written += stop(block.index, input?.end());
      else this.#open.push(block);
    }
    return written;
  }

  #event(event: CompletionEvent): string {
    switch (event.type) {
      case "text-delta":
        return this.#say("text", event);
      case "refusal-delta":
        return this.#say("refusal", event);
      case "reasoning-delta":
        return this.#isSigning ? "" : this.#say("reasoning", event);
      case "tool-call-started":
        return this.#call(event);
      case "tool-call-delta":
        return this.#addInput(event.index, event.arguments);
      case "state":
        return thinkingIn(event)
          .map((entry) => this.#think(entry))
          .join("");
      default:
        return "";
    }
  }

  #say(kind: "text" | "refusal" | "reasoning", { text }: Speech): string {
    if (text === "") return "";
    const last = this.#open.at(-1);
    let written = "";
    let index = last?.index ?? 0;
    if (last?.kind !== kind) {
      index = this.#next++;
      const block =
        kind === "reasoning"
          ? '{"type":"thinking","thinking":"","signature":""}'
          : '{"type":"text","text":"","citations":null}';
      written = this.close(false) + started(index, block);
      this.#open.push({ index, kind });
    }
    return written + delta(index, kind === "reasoning" ? "thinking" : "text", text);
  }

  #think({ place, block }: SignedBlock): string {
    if (block.type === "redacted_thinking") {
      const index = this.#next++;
      return this.close(false) + started(index, JSON.stringify(block)) + stop(index);
    }
    let written = "";
    let open = this.#open.at(-1);
    // Some providers send a block whole, after the reasoning that shows it.
    const isShown = open?.kind === "reasoning";
    if (open?.kind === "reasoning") {
      open = { index: open.index, kind: "thinking", place, isSigned: false };
      this.#open.splice(-1, 1, open);
    } else if (open?.kind !== "thinking" || open.place !== place || open.isSigned) {
      const index = this.#next++;
      written =
        this.close(false) + started(index, '{"type":"thinking","thinking":"","signature":""}');
      open = { index, kind: "thinking", place, isSigned: false };
      this.#open.push(open);
    }
    if (block.thinking !== "" && !isShown) written += delta(open.index, "thinking", block.thinking);
    if (block.signature === "") return written;
    open.isSigned = true;
    return written + delta(open.index, "signature", block.signature);
  }

  #call({ index: call, id, name }: CallStarted): string {
    const index = this.#next++;
    const written = this.close(false);
    this.#open.push({ index, kind: "call", call, input: new CallInput() });
    return (
      written + started(index, JSON.stringify({ type: "tool_use", id, name, caller, input: {} }))
    );
  }

  #addInput(call: number, piece: string): string {
    if (piece === "") return "";
    for (const block of this.#open)
      if (block.kind === "call" && block.call === call) {
        return inputDelta(block.index, block.input.add(piece));
      }
    return "";
  }
}

/** The signed thinking that an event brings for the message as a whole. */
function thinkingIn(event: CompletionEvent): readonly SignedBlock[] {
  return event.type === "state" && event.index === undefined ? signedBlocks(event.fields) : [];
}

/** The arguments of a call as they arrive. A call without any may still get some. */
class CallInput {
  #text = "";
  readonly #scan = new JsonScan();
  /** Whether the text begins an object. Null while there is only white space. */
  #isObject: boolean | null = null;
  #isWhole: boolean | null = null;

  /** Returns the JSON to send. Text that isn't an object waits for the end. */
  add(piece: string): string {
    this.#text += piece;
    this.#scan.add(piece);
    const unsent = this.#isObject === null ? this.#text : piece;
    if (piece.trim() !== "") this.#isObject ??= /^[ \t\n\r]*\{/.test(this.#text);
    return this.#isObject ? unsent : "";
  }

  /** Returns the rest: text that begins no object becomes a member of one, as in a plain answer. */
  end(): string {
    return this.#isObject === false ? JSON.stringify({ arguments: this.#text }) : "";
  }

  /** Whether they are complete. They are parsed once, because an upstream could begin any number of blocks meanwhile. */
  isWhole(): boolean {
    if (this.#scan.depth !== 0 || this.#scan.deepest === 0) return false;
    this.#isWhole ??= isJson(this.#text);
    return this.#isWhole;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const members = {
  text: "text",
  thinking: "thinking",
  signature: "signature",
  input_json: "partial_json",
};

function delta(index: number, kind: keyof typeof members, text: string): string {
  const piece = `{"type":"${kind}_delta","${members[kind]}":${JSON.stringify(text)}}`;
  return event("content_block_delta", `"index":${index},"delta":${piece}`);
}

function inputDelta(index: number, json = ""): string {
  return json === "" ? "" : delta(index, "input_json", json);
}

function started(index: number, block: string): string {
  return event("content_block_start", `"index":${index},"content_block":${block}`);
}

function stop(index: number, rest?: string): string {
  return inputDelta(index, rest) + event("content_block_stop", `"index":${index}`);
}

function event(type: string, rest: string): string {
  return `event: ${type}\ndata: {"type":"${type}",${rest}}\n\n`;
}
