import { isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";
import { type CompletionEvent, isTooMuchJson, type Json } from "@tollgate/core/provider";
import { createParser, type EventSourceMessage, type EventSourceParser } from "eventsource-parser";
import type { AnswerReader, Dialect } from "./dialect.ts";
import { errorEvent, errorIn } from "./error-answer.ts";
import { invalidAnswer, invalidEvent, tooManyValues } from "./failures.ts";
import { copyOf, createSplice, type Splice } from "./splice.ts";

interface EventStreamOptions {
  readonly eventBytes: number;
  readonly secrets: readonly string[];
  readonly dialect: Pick<Dialect, "errors" | "frameText">;
}

/**
 * Reads an answer from the bytes of a server-sent event stream. Most frames are spliced and most reads end between
 * characters, so the parser and the decoder only exist while something needs them.
 */
export class EventStream {
  readonly #answer: AnswerReader;
  readonly #options: EventStreamOptions;
  readonly #splice: Splice;
  #decoder: TextDecoder | null = null;
  #parser: EventSourceParser | null;
  /** Where parsed events go; null between reads. */
  #into: CompletionEvent[] | null = null;
  #isBetweenFrames = true;
  #isDone = false;

  constructor(answer: AnswerReader, options: EventStreamOptions) {
    this.#answer = answer;
    this.#options = options;
    this.#splice = createSplice(options.eventBytes, options.dialect.frameText);
    this.#parser = this.#createParser();
  }

  /** Adds the events in some bytes. If it throws, the events before the failure have been added. */
  feed(bytes: Buffer, into: CompletionEvent[]): void {
    if (this.#isDone) return;
    this.#feedFrames(this.#decode(bytes), into);
  }

  /** Whether its last event arrived. Later bytes are ignored. */
  done(): boolean {
    return this.#isDone;
  }

  /** Reads a stream frame by frame. A frame ends with a blank line. */
  #feedFrames(text: string, into: CompletionEvent[]): void {
    let at = 0;
    for (let end = text.indexOf(blankLine); end >= 0; end = text.indexOf(blankLine, at)) {
      const frame = text.slice(at, end + blankLine.length);
      at = end + blankLine.length;
      const spliced = this.#isBetweenFrames ? this.#splice.read(frame) : null;
      if (spliced === null) this.#parse(frame, this.#isBetweenFrames, into);
      else {
        into.push(spliced);
        // Between frames, it holds nothing.
        this.#parser = null;
      }
      this.#isBetweenFrames = true;
      if (this.#isDone) return;
    }
    if (at === text.length) return;
    // The parser keeps the start of a frame until its rest arrives.
    this.#parse(at === 0 ? text : copyOf(text.slice(at)), false, into);
    this.#isBetweenFrames = false;
  }

  #parse(text: string, isFrame: boolean, into: CompletionEvent[]): void {
    const before = into.length;
    this.#parser ??= this.#createLaterParser();
    this.#into = into;
    this.#parser.feed(text);
    this.#into = null;
    this.#splice.learn(isFrame ? text : null, into.slice(before));
  }

  #createLaterParser(): EventSourceParser {
    const parser = this.#createParser();
    // Only the start of a stream may have a byte order mark, and a comment isn't one.
    parser.feed(":\n");
    return parser;
  }

  #createParser(): EventSourceParser {
    return createParser({
      // In characters, which are never more than bytes. `#take` checks the exact size.
      maxBufferSize: this.#options.eventBytes,
      onError(error) {
        if (error.type === "max-buffer-size-exceeded") throw eventTooLarge();
      },
      onEvent: (message) => this.#take(message),
    });
  }

  #take({ data, event }: EventSourceMessage): void {
    if (this.#isDone || this.#into === null || data === "") return;
    const { eventBytes, secrets, dialect } = this.#options;
    if (data.length * 3 > eventBytes && Buffer.byteLength(data) > eventBytes) throw eventTooLarge();
    if (data === "[DONE]") {
      this.#isDone = true;
      return;
    }
    const chunk = parse(data);
    if (event === "error")
      throw errorEvent(errorIn(chunk) ?? chunk, {
        answered: this.#answer.written(),
        secrets,
        format: dialect.errors,
      });
    this.#answer.add(chunk, this.#into, data);
    this.#isDone = this.#answer.ended();
  }

  #decode(bytes: Buffer): string {
    if (this.#decoder === null && isUtf8(bytes)) return bytes.toString("utf8");
    this.#decoder ??= new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return decode(this.#decoder, bytes);
  }
}

const blankLine = "\n\n";

function decode(decoder: TextDecoder, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes, { stream: true });
  } catch {
    throw invalidEvent("The provider sent bytes that are not UTF-8.");
  }
}

function parse(data: string): Json {
  if (isTooMuchJson(data)) throw tooManyValues();
  try {
    return JSON.parse(data);
  } catch {
    // The parser's own message quotes the upstream's text.
    throw invalidEvent("The provider sent an event that is not JSON.");
  }
}

function eventTooLarge(): Error {
  return invalidAnswer("event_too_large", "The provider sent an event that is too large.");
}
