import type { MessageTexts } from "../contracts/step-verbs.ts";
import { type Message, startsTurn } from "../domain/message.ts";
import { sha256, sha256Of } from "../kernel/digest.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import { canonicalMessage } from "./canonical-message.ts";

/** The transcript chain of a request's messages. An assistant message that is repeated right after itself counts once. */
export interface TranscriptChain {
  /** h[1..n], 32 bytes each. */
  readonly values: Buffer;
  /** The messages as JSON texts, one per chain value. */
  readonly messages: MessageTexts;
  /** The position of each message of the request in the chain, from 0. */
  readonly places: readonly number[];
  /** Position of the last user message, counted from 1; 0 without one. */
  readonly lastUserMessage: number;
  /** The last message in canonical form, and whether it is an assistant's. */
  readonly last: string;
}

const valueBytes = 32;

/** Characters of messages to process before yielding to the event loop. */
const pauseAfterChars = 262_144;
const largeMessage = 1_048_576;

/** The chain of the first messages of a request, computed for an earlier request. */
export type KnownChain = Omit<TranscriptChain, "messages">;

/**
 * h[0] = H(salt), h[i] = H(h[i-1] ‖ H(salt ‖ canonical message i)), where H is SHA-256. Returns a promise only if it takes
 * long. `known` is the chain of the first messages, if it was computed before.
 */
export function chainOf(
  messages: readonly Message[],
  salt: Uint8Array,
  known?: KnownChain,
): TranscriptChain | Promise<TranscriptChain> {
  const links = new ChainBuilder(messages, salt, known);
  return links.add() ? links.chain() : addWithPauses(links);
}

const nothingKnown: KnownChain = {
  values: Buffer.alloc(0),
  places: [],
  lastUserMessage: 0,
  last: "",
};

async function addWithPauses(links: ChainBuilder): Promise<TranscriptChain> {
  do await yieldToEventLoop();
  while (!links.add());
  return links.chain();
}

/** Builds a chain message by message. Pauses after large or many messages, so it doesn't block the process. */
class ChainBuilder {
  readonly #messages: readonly Message[];
  readonly #salt: Uint8Array;
  readonly #values: Buffer;
  readonly #texts: string[] = [];
  /** The position of the first message in `#texts`. Known messages before it have none. */
  readonly #from: number;
  readonly #places: number[];
  #at: number;
  #head: Uint8Array;
  #last: string;
  #lastUserMessage: number;
  /** The parts of the next message that were computed before a pause. */
  #canonical: string | null = null;
  #text: string | null = null;

  constructor(messages: readonly Message[], salt: Uint8Array, known: KnownChain = nothingKnown) {
    this.#messages = messages;
    this.#salt = salt;
    this.#places = [...known.places];
    this.#at = known.places.length;
    this.#from = known.values.length / valueBytes;
    this.#values = Buffer.allocUnsafe((this.#from + messages.length - this.#at) * valueBytes);
    this.#values.set(known.values);
    this.#head = this.#from === 0 ? sha256(salt) : headOf(known);
    this.#last = known.last;
    this.#lastUserMessage = known.lastUserMessage;
  }

  /** The number of chain values. */
  get #length(): number {
    return this.#from + this.#texts.length;
  }

  /** Adds messages until all are added or a pause is due. Returns whether all are added. */
  add(): boolean {
    let size = 0;
    for (const message of this.#messages.slice(this.#at)) {
      const added = size > pauseAfterChars ? null : this.#link(message);
      if (added === null) break;
      size += added;
      this.#at++;
    }
    return this.#at === this.#messages.length;
  }

  chain(): TranscriptChain {
    return {
      values: this.#values.subarray(0, this.#length * valueBytes),
      messages: this.#from === 0 ? this.#texts : this.#textsFromThere(),
      places: this.#places,
      lastUserMessage: this.#lastUserMessage,
      last: this.#last,
    };
  }

  /** Usually, only the last messages of a known conversation are needed. The texts of earlier ones are written on request. */
  #textsFromThere(): MessageTexts {
    const [messages, places, from, texts] = [this.#messages, this.#places, this.#from, this.#texts];
    return {
      length: this.#length,
      slice(start) {
        if (start >= from) return texts.slice(start - from);
        const earlier: string[] = [];
        for (let at = places.indexOf(start); places[at] !== from && at < messages.length; at++)
          if (places[at] !== places[at - 1]) earlier.push(JSON.stringify(messages[at]));
        return [...earlier, ...texts];
      },
    };
  }

  /** Adds a message. Returns its size, or null if a pause is due first. */
  #link(message: Message): number | null {
    const isBegun = this.#canonical !== null;
    const canonical = this.#canonical ?? canonicalMessage(message);
    if (message.role === "assistant" && canonical === this.#last) {
      this.#places.push(this.#length - 1);
      return 0;
    }
    this.#canonical = canonical;
    if (!isBegun && canonical.length > largeMessage) return null;
    const isWritten = this.#text !== null;
    const text = this.#text ?? JSON.stringify(message);
    this.#text = text;
    if (!isWritten && text.length > largeMessage) return null;
    this.#canonical = null;
    this.#text = null;
    this.#last = canonical;
    this.#places.push(this.#length);
    this.#head = nextHead(this.#head, canonical, this.#salt);
    this.#values.set(this.#head, this.#length * valueBytes);
    this.#texts.push(text);
    if (startsTurn(message)) this.#lastUserMessage = this.#length;
    return text.length;
  }
}

/** As much of a chain as its extension needs: at least its last value. */
export type ChainEnd = Pick<TranscriptChain, "values" | "last">;

/** The part of a reply that extends a transcript. */
export interface ReplyExtension {
  /** The chain value of each message. */
  readonly values: Buffer;
  readonly messages: readonly Message[];
}

/** Extends a chain by a reply, without the messages that repeat the assistant message they would follow. */
export function extendByReply(
  chain: ChainEnd,
  reply: readonly Message[],
  salt: Uint8Array,
): ReplyExtension {
  const values: Uint8Array[] = [];
  const messages: Message[] = [];
  let head: Uint8Array = headOf(chain);
  let last = chain.last;
  for (const message of reply) {
    const canonical = canonicalMessage(message);
    if (message.role === "assistant" && canonical === last) continue;
    last = canonical;
    head = nextHead(head, canonical, salt);
    values.push(head);
    messages.push(message);
  }
  return { values: Buffer.concat(values), messages };
}

/** The chain value of the whole request. */
export function headOf(chain: ChainEnd): Buffer {
  return chain.values.subarray(chain.values.length - valueBytes);
}

function nextHead(head: Uint8Array, canonical: string, salt: Uint8Array): Buffer {
  return sha256Of(head, sha256Of(salt, canonical));
}

/** The number of assistant messages after the last user message; all of them if there is no user message (section 2.8). */
export function stepNumberOf(messages: readonly Message[]): number {
  let count = 0;
  for (const message of messages) {
    if (startsTurn(message)) count = 0;
    else if (message.role === "assistant") count++;
  }
  return count;
}
