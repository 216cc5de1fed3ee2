import {
  type Clock,
  type CompletionEvent,
  orAborted,
  yieldToEventLoop,
} from "@tollgate/core/provider";
import { createAnswerReader } from "./answer-reader.ts";
import { invalidAnswer } from "./failures.ts";
import type { Part } from "./model-call.ts";

export interface ReadOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

// How long to wait for the end of a stream after the model stopped.
const gracePeriodMs = 2_000;

// The AI SDK takes a quarter of a millisecond per part, and many parts can be available at once.
const maxPartsPerTurn = 64;

/** Reads an answer as events, part by part, until the model stops. */
export async function* readAnswer(
  pending: Promise<AsyncIterator<Part>>,
  options: ReadOptions,
): AsyncGenerator<readonly CompletionEvent[], void, undefined> {
  const { signal } = options;
  const parts = await orAborted(signal, () => pending);
  const answer = createAnswerReader();
  try {
    for (let read = 1; !answer.finished(); read++) {
      if (read % maxPartsPerTurn === 0) await orAborted(signal, yieldToEventLoop);
      const next = await orAborted(signal, () => parts.next());
      if (next.done === true)
        throw invalidAnswer("answer_cut", "The provider's answer ended before it was complete.");
      const events: CompletionEvent[] = [];
      answer.add(next.value, events);
      if (events.length > 0) yield events;
    }
    await drain(parts, options);
  } finally {
    // Not awaited: the call's signal closes a slow iterator.
    void parts.return?.().catch(() => {});
  }
}

/** Reads the rest of the stream: the connection is reused only if its answer has ended. */
async function drain(parts: AsyncIterator<Part>, { signal, clock }: ReadOptions): Promise<void> {
  const over = Promise.withResolvers<void>();
  const cancelGracePeriod = clock.after(gracePeriodMs, over.resolve);
  const ended = async (): Promise<void> => {
    for (let next = await parts.next(); next.done !== true; next = await parts.next());
  };
  try {
    await orAborted(signal, () => Promise.race([ended().catch(() => {}), over.promise]));
  } finally {
    cancelGracePeriod();
  }
}
