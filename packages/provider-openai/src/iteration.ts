import type { AnswerSink, CompletionEvent } from "@tollgate/core/provider";

const over = { done: true, value: undefined } as const;

/** An answer that is told, as an iteration: for those who take no calls. It begins, and goes on, when it is asked. */
export function iterationOf(
  tell: (sink: AnswerSink) => () => void,
  signal: AbortSignal,
): AsyncIterator<readonly CompletionEvent[], undefined> {
  let batch: readonly CompletionEvent[] | null = null;
  let end: { readonly failure: { readonly thrown: unknown } | null } | null = null;
  let cancel: (() => void) | null = null;
  let goOn = (): void => {};
  let wake = (): void => {};

  function finish(failure: { readonly thrown: unknown } | null): void {
    end ??= { failure };
    signal.removeEventListener("abort", onAbort);
    wake();
  }
  function stop(failure: { readonly thrown: unknown } | null): void {
    batch = null;
    cancel?.();
    finish(failure);
  }
  function onAbort(): void {
    stop({ thrown: signal.reason });
  }
  const sink: AnswerSink = {
    events(events) {
      batch = events;
      wake();
      return new Promise((resolve) => {
        goOn = resolve;
      });
    },
    ended: () => finish(null),
    failed: (thrown) => finish({ thrown }),
  };
  function askForMore(): void {
    if (cancel !== null) goOn();
    else {
      signal.throwIfAborted();
      signal.addEventListener("abort", onAbort, { once: true });
      cancel = tell(sink);
    }
  }
  function taken(): readonly CompletionEvent[] | null {
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
      const events = taken();
      return events === null ? over : { done: false, value: events };
    },
    async return() {
      stop(null);
      return over;
    },
  };
}
