import type { Clock } from "./clock.ts";

/** An `AbortSignal`, or a server's own signal. */
interface AbortSource {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once: true }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Settles as the promise does, or rejects with the signal's reason as soon as it aborts. */
export function unlessAborted<Value>(
  signal: AbortSource,
  promise: PromiseLike<Value>,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(
      (value) => {
        signal.removeEventListener("abort", onAbort);
        resolve(value);
      },
      (thrown: unknown) => {
        signal.removeEventListener("abort", onAbort);
        reject(thrown);
      },
    );
  });
}

/**
 * Calls `run` and settles as its promise does, or rejects with the signal's reason as soon as it aborts, even if `run`
 * ignores the signal. If the signal has already aborted, `run` isn't called.
 */
export async function orAborted<Value>(
  signal: AbortSignal,
  run: () => PromiseLike<Value>,
): Promise<Value> {
  signal.throwIfAborted();
  // A host may return a plain value despite the type.
  return unlessAborted(signal, Promise.resolve(run()));
}

/** Calls `run` and settles as its result does, or rejects after `milliseconds`. It can't stop `run`. */
export async function orTimeout<Value>(
  clock: Clock,
  milliseconds: number,
  run: () => Value | PromiseLike<Value>,
): Promise<Value> {
  const timedOut = Promise.withResolvers<never>();
  const cancel = clock.after(milliseconds, () =>
    timedOut.reject(new Error("The call exceeded its time limit.")),
  );
  try {
    return await Promise.race([run(), timedOut.promise]);
  } finally {
    cancel();
  }
}
