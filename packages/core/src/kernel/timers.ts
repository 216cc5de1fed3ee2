import type { Clock } from "./clock.ts";
import { createInFlight } from "./in-flight.ts";

/** Something with moments of its own, such as a deadline that every event moves: it keeps them as fields. */
export interface Timed {
  /** Does what is due by `now`, and says when to look again: later than `now`, or infinity. Both are monotonic. */
  check(now: number): number;
}

/**
 * The moments of all requests of a gateway on one timer of the clock. To set or to move a moment is to write a field; the
 * clock is touched only when a moment comes before all others. The timer keeps the process alive while anything is timed.
 */
export interface Timers {
  /** Monotonic time in milliseconds. */
  now(): number;
  /** Looks at `timed` at `due`, or earlier, or with thousands of others a few milliseconds later; returns its slot. */
  add(timed: Timed, due: number): number;
  /** Looks no later than at `due`: to be told when a moment of something comes earlier than it said. */
  checkBy(due: number): void;
  /** Call it once for each slot. */
  remove(slot: number): void;
}

/** For each so many timed at once, a moment may come a millisecond late: looking at all of them for each would never end. */
const timedPerMillisecond = 1_000;

export function createTimers(clock: Clock): Timers {
  const timed = createInFlight<Timed>();
  let nextLook = Number.POSITIVE_INFINITY;
  let cancel = (): void => {};

  function by(due: number): void {
    if (due >= nextLook) return;
    cancel();
    nextLook = due;
    cancel = clock.after(Math.max(0, due - clock.monotonic()), lookAtAll);
  }
  function lookAtAll(): void {
    const now = clock.monotonic();
    nextLook = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const one of timed.all()) next = Math.min(next, one.check(now));
    if (timed.count() > 0)
      by(Math.max(next, now + Math.floor(timed.count() / timedPerMillisecond)));
  }
  return {
    now: () => clock.monotonic(),
    add(one, due) {
      const slot = timed.add(one);
      by(due);
      return slot;
    },
    checkBy: by,
    remove(slot) {
      timed.remove(slot);
      if (timed.count() > 0) return;
      cancel();
      nextLook = Number.POSITIVE_INFINITY;
    },
  };
}
