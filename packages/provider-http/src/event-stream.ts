import { TextDecoder } from "node:util";
import { type CompletionEvent, isTooMuchJson, type Json } from "@tollgate/core/provider";
import { createParser } from "eventsource-parser";
import type { AnswerReader, Dialect } from "./dialect.ts";
import { errorEvent, errorIn } from "./error-answer.ts";
import { invalidAnswer, invalidEvent, tooManyValues } from "./failures.ts";
import { copyOf, createSplice } from "./splice.ts";

/** Reads an answer from the bytes of a server-sent event stream. */
export interface EventStream {
  /** Adds the events in some bytes. If it throws, the events before the failure have been added. */
  feed(bytes: Uint8Array, into: CompletionEvent[]): void;
  /** Whether its last event arrived. Later bytes are ignored. */
  done(): boolean;
}

export function createEventStream(
  answer: AnswerReader,
  {
    eventBytes,
    secrets,
    dialect: { errors: format, frameText },
  }: {
    readonly eventBytes: number;
    readonly secrets: readonly string[];
    readonly dialect: Pick<Dialect, "errors" | "frameText">;
  },
): EventStream {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let done = false;
  let events: CompletionEvent[] = [];
  const parser = createParser({
    // In characters, which are never more than bytes. `onEvent` checks the exact size.
    maxBufferSize: eventBytes,
    onError(error) {
      if (error.type === "max-buffer-size-exceeded") throw eventTooLarge();
    },
    onEvent({ data, event }) {
      if (done || data === "") return;
      if (data.length * 3 > eventBytes && Buffer.byteLength(data) > eventBytes)
        throw eventTooLarge();
      if (data === "[DONE]") {
        done = true;
        return;
      }
      const chunk = parse(data);
      if (event === "error")
        throw errorEvent(errorIn(chunk) ?? chunk, {
          answered: answer.written(),
          secrets,
          format,
        });
      answer.add(chunk, events, data);
      done = answer.ended();
    },
  });

  const splice = createSplice(eventBytes, frameText);
  let isBetweenFrames = true;

  const parseText = (text: string, isFrame: boolean): void => {
    const before = events.length;
    parser.feed(text);
    splice.learn(isFrame ? text : null, events.slice(before));
  };
  /** Reads a stream frame by frame. A frame ends with a blank line. */
  const feedFrames = (text: string): void => {
    let at = 0;
    for (let end = text.indexOf(blankLine); end >= 0; end = text.indexOf(blankLine, at)) {
      const frame = text.slice(at, end + blankLine.length);
      at = end + blankLine.length;
      const spliced = isBetweenFrames ? splice.read(frame) : null;
      if (spliced !== null) events.push(spliced);
      else parseText(frame, isBetweenFrames);
      isBetweenFrames = true;
      if (done) return;
    }
    if (at === text.length) return;
    // The parser keeps the start of a frame until its rest arrives.
    parseText(at === 0 ? text : copyOf(text.slice(at)), false);
    isBetweenFrames = false;
  };

  return {
    feed(bytes, into) {
      if (done) return;
      events = into;
      feedFrames(decode(decoder, bytes));
    },
    done: () => done,
  };
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
