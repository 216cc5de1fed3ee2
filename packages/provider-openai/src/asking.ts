import type { CompletionEvent } from "@tollgate/core/provider";

/** A request that is ready to leave. */
export interface ReadyRequest {
  /** Says so, before anything leaves. */
  readonly event: CompletionEvent;
  send(): SentRequest;
}

/** A request on its way, and its answer. */
export interface SentRequest {
  /** The events of what arrived since the last read; null at the end of a complete answer. */
  read(): Promise<readonly CompletionEvent[] | null>;
  /** Nothing more is read. */
  close(answer: "complete" | "incomplete"): void;
}

const over = { done: true, value: undefined } as const;

/** One call as `Provider.complete` gives it: no generator, which makes four more promises for each read. */
export function asking(
  prepare: () => Promise<ReadyRequest>,
): AsyncIterator<readonly CompletionEvent[], undefined> {
  let ready: ReadyRequest | null = null;
  let sent: SentRequest | null = null;
  let isOver = false;

  function end(answer: "complete" | "incomplete"): void {
    if (isOver) return;
    isOver = true;
    sent?.close(answer);
  }
  return {
    async next() {
      if (isOver) return over;
      try {
        if (ready === null) {
          ready = await prepare();
          return { done: false, value: [ready.event] };
        }
        sent ??= ready.send();
        const events = await sent.read();
        if (events !== null) return { done: false, value: events };
        end("complete");
        return over;
      } catch (thrown) {
        end("incomplete");
        throw thrown;
      }
    },
    async return() {
      end("incomplete");
      return over;
    },
  };
}
