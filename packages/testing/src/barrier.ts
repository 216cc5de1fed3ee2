/** A barrier where calls of a scripted provider wait until a test releases them. */
export interface Barrier {
  /** Resolves when this many calls have reached the barrier. Default 1. */
  reached(calls?: number): Promise<void>;
  /** Lets all calls continue, now and later. */
  release(): void;
}

/** The provider's side of a barrier. */
export interface ProviderBarrier extends Barrier {
  /** Resolves when the barrier is released or the signal aborts. */
  pass(signal: AbortSignal): Promise<void>;
}

export function createBarrier(): ProviderBarrier {
  const released = Promise.withResolvers<void>();
  let count = 0;
  let waiting: { readonly calls: number; readonly resolve: () => void }[] = [];

  return {
    reached: (calls = 1) =>
      count >= calls
        ? Promise.resolve()
        : new Promise((resolve) => waiting.push({ calls, resolve })),
    release: () => released.resolve(),
    pass(signal) {
      count++;
      const due = waiting.filter(({ calls }) => calls <= count);
      waiting = waiting.filter(({ calls }) => calls > count);
      for (const { resolve } of due) resolve();
      return untilAborted(released.promise, signal);
    },
  };
}

/** Resolves with the promise, or when the signal aborts. */
export function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      signal.removeEventListener("abort", end);
      resolve();
    };
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", end);
    promise.then(end);
  });
}
