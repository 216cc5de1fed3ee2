import type { Clock } from "@tollgate/core";

/** A clock that moves only in steps, and waits for pending work between two timers. */
export interface SteppedClock extends Clock {
  advance(milliseconds: number): Promise<void>;
  /** Sets only the wall clock, never more than an hour behind the latest time. */
  moveWall(milliseconds: number): void;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

const start = Date.UTC(2026, 0, 1);
/** Hourly sums leave this time for clocks that differ. */
const maxBehind = 3_600_000;

/** A clock that runs one timer at a time, and waits with `rest` for the work of each. */
export function steppedClock(rest: () => Promise<void>): SteppedClock {
  const timers = new Set<Timer>();
  let monotonic = 0;
  let wall = start;
  let latest = start;
  const due = (until: number): Timer | undefined =>
    [...timers].filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0];

  return {
    now: () => Math.floor(wall + monotonic),
    monotonic: () => monotonic,
    after(milliseconds, run) {
      const timer = { at: monotonic + Math.max(0, milliseconds), run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    async advance(milliseconds) {
      const target = monotonic + milliseconds;
      await rest();
      for (let timer = due(target); timer !== undefined; timer = due(target)) {
        timers.delete(timer);
        monotonic = timer.at;
        timer.run();
        await rest();
      }
      monotonic = target;
    },
    moveWall(milliseconds) {
      wall = Math.max(wall + milliseconds, latest - maxBehind);
      latest = Math.max(wall, latest);
    },
  };
}
