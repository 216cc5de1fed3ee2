import {
  addChunk,
  isTooMuchJson,
  type ProviderCall,
  type ProviderError,
} from "@tollgate/core/provider";
import { type EventMeasure, measureEvents, measureFrames, measureLines } from "./event-measures.ts";
import { invalidAnswer, limitExceeded } from "./failures.ts";

/**
 * Passes on the bytes of an answer within the limits of a call. The AI SDK parses an event or a whole body at once, so
 * each is measured first.
 */
export function measuredBody(
  { contentType, stream }: { readonly contentType: string; readonly stream: boolean },
  limits: ProviderCall["limits"],
  onFailure: (failure: ProviderError) => void,
): TransformStream<Uint8Array, Uint8Array> {
  const events = stream ? eventMeasure(contentType) : null;
  return events === null ? wholeBody(limits, onFailure) : streamedBody(events, limits, onFailure);
}

function streamedBody(
  events: EventMeasure,
  { eventBytes, totalBytes }: ProviderCall["limits"],
  onFailure: (failure: ProviderError) => void,
): TransformStream<Uint8Array, Uint8Array> {
  let total = 0;
  return new TransformStream({
    transform(chunk, controller) {
      total += chunk.length;
      const failure =
        total > totalBytes ? limitExceeded("answer_too_large") : excess(events, chunk, eventBytes);
      if (failure === null) return controller.enqueue(chunk);
      onFailure(failure);
      controller.error(failure);
    },
  });
}

function excess(events: EventMeasure, chunk: Uint8Array, maxBytes: number): ProviderError | null {
  const { maxEventBytes, texts } = events(chunk);
  if (maxEventBytes > maxBytes) return limitExceeded("event_too_large");
  return texts.some(isTooMuchJson) ? limitExceeded("too_many_values") : null;
}

function wholeBody(
  { bodyBytes, totalBytes }: ProviderCall["limits"],
  onFailure: (failure: ProviderError) => void,
): TransformStream<Uint8Array, Uint8Array> {
  const maxBytes = Math.min(bodyBytes, totalBytes);
  const chunks: Uint8Array[] = [];
  let total = 0;
  return new TransformStream({
    transform(chunk, controller) {
      total += chunk.length;
      if (total <= maxBytes) return addChunk(chunks, chunk);
      const failure = limitExceeded("answer_too_large");
      onFailure(failure);
      controller.error(failure);
    },
    flush(controller) {
      const body = Buffer.concat(chunks);
      const failure = excessOfWhole(body.toString("latin1"));
      if (failure === null) return controller.enqueue(body);
      onFailure(failure);
      controller.error(failure);
    },
  });
}

/** Some providers of the AI SDK parse any body with `data` lines as events. JSON has no such lines. */
function excessOfWhole(text: string): ProviderError | null {
  if (/(?:^(?:\xef\xbb\xbf)?|[\r\n])data/.test(text))
    return invalidAnswer("invalid_answer", "The provider's answer contains no completion.");
  return isTooMuchJson(text) ? limitExceeded("too_many_values") : null;
}

/** Returns the measure for the events of a stream, or null for a single body. */
function eventMeasure(contentType: string): EventMeasure | null {
  if (/^application\/vnd\.amazon\.eventstream\b/i.test(contentType)) return measureFrames();
  if (/^application\/(?:x-)?(?:ndjson|jsonl|jsonlines)\b/i.test(contentType)) return measureLines();
  return /^application\/json\b/i.test(contentType) ? null : measureEvents();
}
