import type { Clock } from "./clock.ts";
import { createInFlight } from "./in-flight.ts";

/** Something with due times, such as a deadline that every event moves. It keeps them in its own fields. */
export interface Timed {
  /**
   * Does everything that is due by `now`. Returns when to check again: later than `now`, or infinity. Both are monotonic.
   */
  check(now: number): number;
}

/**
 * The due times of all requests on one timer of the clock. Setting or moving a due time only writes a field; the clock is
 * used only if it is the earliest of all. The timer keeps the process alive while anything is timed.
 */
export interface Timers {
  /** Monotonic time in milliseconds. */
  now(): number;
  /** Checks `timed` at `due` or earlier; with thousands of others, up to a few milliseconds later. Returns its slot. */
  add(timed: Timed, due: number): number;
  /** Checks everything at `due` at the latest. Call it if something is due earlier than its last `check` said. */
  checkBy(due: number): void;
  /** Call it once per slot. */
  remove(slot: number): void;
}

/**
 * Each this many timed items may delay a check by a millisecond. Otherwise, checking all of them for each would never end.
 */
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
    for (const item of timed.all()) next = Math.min(next, item.check(now));
    if (timed.count() > 0)
      by(Math.max(next, now + Math.floor(timed.count() / timedPerMillisecond)));
  }
  return {
    now: () => clock.monotonic(),
    add(item, due) {
      const slot = timed.add(item);
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
