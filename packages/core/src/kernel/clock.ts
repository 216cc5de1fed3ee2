/** The source of time. Wall time dates records and periods; monotonic time measures durations. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds from an arbitrary start. Never goes back. */
  monotonic(): number;
  /**
   * Calls `run` once, `milliseconds` from now, unless the returned function is called first. The timer keeps the process
   * alive until then, unless it is a `background` timer.
   */
  after(milliseconds: number, run: () => void, options?: TimerOptions): () => void;
}

/** How a timer affects its process. */
export interface TimerOptions {
  /** Whether the process may exit before the timer fires. Default false. */
  readonly background?: boolean;
}

/** A longer timer (24.8 days) would fire at once. */
const maxTimerMs = 2_147_483_647;

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(milliseconds, run, { background = false } = {}) {
    const timer = setTimeout(run, Math.min(milliseconds, maxTimerMs));
    if (background) timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after `milliseconds`. */
export function sleep(clock: Clock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(milliseconds, resolve);
  });
}
