import type { ProviderError } from "@tollgate/core/provider";
import { invalidAnswer } from "./failures.ts";

/** Counts the bytes of an answer as they pass, against the bounds of a call. */
export function measuredBody(
  contentType: string,
  { eventBytes, totalBytes }: { readonly eventBytes: number; readonly totalBytes: number },
  onFailure: (failure: ProviderError) => void,
): TransformStream<Uint8Array, Uint8Array> {
  const longestEvent = eventMeasure(contentType);
  let total = 0;
  return new TransformStream({
    transform(chunk, controller) {
      total += chunk.length;
      const tooLarge =
        total > totalBytes
          ? "answer_too_large"
          : longestEvent(chunk) > eventBytes
            ? "event_too_large"
            : null;
      if (tooLarge === null) return controller.enqueue(chunk);
      const failure = invalidAnswer(tooLarge, "The provider answered more than is accepted.");
      onFailure(failure);
      controller.error(failure);
    },
  });
}

/** The longest event so far that ends in, or goes on after, each chunk it is given. */
function eventMeasure(contentType: string): (chunk: Uint8Array) => number {
  if (/^text\/event-stream\b/i.test(contentType)) return measureLines();
  if (/^application\/vnd\.amazon\.eventstream\b/i.test(contentType)) return measureFrames();
  return () => 0;
}

const lineFeed = 10;
const carriageReturn = 13;

/** Server-sent events end with an empty line. */
function measureLines(): (chunk: Uint8Array) => number {
  let event = 0;
  let line = 0;
  return (chunk) => {
    let longest = 0;
    for (const byte of chunk) {
      event += 1;
      if (byte !== lineFeed && byte !== carriageReturn) line += 1;
      if (event > longest) longest = event;
      if (byte !== lineFeed) continue;
      if (line === 0) event = 0;
      line = 0;
    }
    return longest;
  };
}

/** Frames say their length in their first four bytes. */
function measureFrames(): (chunk: Uint8Array) => number {
  const prefix = Buffer.alloc(4);
  let at = 0;
  let length = 0;
  return (chunk) => {
    let longest = length;
    for (let index = 0; index < chunk.length; ) {
      if (at < 4) {
        prefix[at++] = chunk[index++] ?? 0;
        if (at === 4) length = Math.max(4, prefix.readUInt32BE());
        longest = Math.max(longest, at === 4 ? length : 0);
      } else {
        const step = Math.min(length - at, chunk.length - index);
        at += step;
        index += step;
      }
      if (at >= 4 && at === length) at = length = 0;
    }
    return longest;
  };
}
