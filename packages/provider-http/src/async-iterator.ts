import type { AnswerSink, CompletionEvent } from "@tollgate/core/provider";

const done = { done: true, value: undefined } as const;

/** Converts an answer to an async iterator, for callers without a sink. It starts and continues on demand. */
export function toAsyncIterator(
  tell: (sink: AnswerSink) => () => void,
  signal: AbortSignal,
): AsyncIterator<readonly CompletionEvent[], undefined> {
  let batch: readonly CompletionEvent[] | null = null;
  let end: { readonly failure: { readonly thrown: unknown } | null } | null = null;
  let cancel: (() => void) | null = null;
  let resume = (): void => {};
  let wake = (): void => {};

  function finish(failure: { readonly thrown: unknown } | null): void {
    end ??= { failure };
    signal.removeEventListener("abort", onAbort);
    wake();
  }
  function stop(failure: { readonly thrown: unknown } | null): void {
    finish(failure);
    cancel?.();
    batch = null;
  }
  function onAbort(): void {
    stop({ thrown: signal.reason });
  }
  const sink: AnswerSink = {
    events(events) {
      batch = events;
      wake();
      return new Promise((resolve) => {
        resume = resolve;
      });
    },
    ended: () => finish(null),
    failed: (thrown) => finish({ thrown }),
  };
  function askForMore(): void {
    if (cancel !== null) resume();
    else {
      signal.throwIfAborted();
      signal.addEventListener("abort", onAbort, { once: true });
      cancel = tell(sink);
    }
  }
  function takeBatch(): readonly CompletionEvent[] | null {
    const events = batch;
    batch = null;
    if (events === null && end?.failure) {
      const { thrown } = end.failure;
      end = { failure: null };
      throw thrown;
    }
    return events;
  }
  return {
    async next() {
      if (end === null) askForMore();
      if (batch === null && end === null)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      const events = takeBatch();
      return events === null ? done : { done: false, value: events };
    },
    async return() {
      stop(null);
      return done;
    },
  };
}
