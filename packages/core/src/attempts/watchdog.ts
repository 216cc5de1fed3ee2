import type { Clock } from "../kernel/clock.ts";

/** Watches that a provider keeps answering: first within one bound, then with no gap longer than another. */
export interface Watchdog {
  /** The provider answered something. */
  heard(): void;
  /** While the client is what is waited for, the provider's silence does not count. */
  pause(): void;
  /** The provider is waited for again. */
  resume(): void;
  stop(): void;
}

/** Calls `silent` once when a bound is passed. One timer, which is moved only when it fires. */
export function createWatchdog(
  clock: Clock,
  bounds: { readonly firstByte: number; readonly idle: number },
  silent: () => void,
): Watchdog {
  let since = clock.monotonic();
  let bound = bounds.firstByte;
  let paused = false;
  let cancel = clock.after(bound, check);

  function check(): void {
    const rest = since + bound - clock.monotonic();
    if (rest <= 0 && !paused) silent();
    else cancel = clock.after(Math.max(rest, paused ? bound : 1), check);
  }

  function heard(): void {
    since = clock.monotonic();
    paused = false;
    if (bound === bounds.idle) return;
    bound = bounds.idle;
    cancel();
    cancel = clock.after(bound, check);
  }

  return {
    heard,
    resume() {
      if (paused) heard();
    },
    pause() {
      paused = true;
    },
    stop: () => cancel(),
  };
}
