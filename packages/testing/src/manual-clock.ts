import { setImmediate as turn } from "node:timers/promises";
import { type Clock, type Duration, parseDuration } from "@tollgate/core";

/** A clock that only a test moves. Timers use monotonic time, as on a machine. */
export interface ManualClock extends Clock {
  /**
   * Waits until pending work is done, then advances both times. Each due timer runs at its own time, the earliest first.
   * Its work completes before the next timer, so timers that it sets run too.
   * @throws RangeError for an invalid duration
   */
  advance(duration: Duration): Promise<void>;
  /** Sets only the wall clock, as an operator would: to an ISO 8601 time, or milliseconds since the epoch. */
  setWall(time: string | number): void;
  /**
   * Advances from timer to timer until the promise settles, and returns its result.
   * @throws RangeError when it has not settled after `most` (default 1 h)
   */
  until<Result>(promise: Promise<Result>, maxWait?: Duration): Promise<Result>;
  /** The number of pending timers. */
  timers(): number;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** The default start of a manual clock. */
const defaultStart = "2026-01-01T00:00:00.000Z";
/** The number of event loop turns after which pending work counts as done. */
const turns = 3;

/** A clock for tests. Starts at an ISO 8601 time, by default at the beginning of 2026 in UTC. */
export function manualClock(start: string = defaultStart): ManualClock {
  let wall = millisecondsOf(start);
  let monotonic = 0;
  let timers: Timer[] = [];

  const moveTo = (time: number): void => {
    wall += time - monotonic;
    monotonic = time;
  };
  const cancel = (timer: Timer): void => {
    timers = timers.filter((other) => other !== timer);
  };
  const nextTimer = (): Timer | undefined =>
    timers.reduce<Timer | undefined>(
      (first, timer) => (first && first.at <= timer.at ? first : timer),
      undefined,
    );
  const runNext = async (until: number): Promise<boolean> => {
    const timer = nextTimer();
    if (!timer || timer.at > until) return false;
    cancel(timer);
    moveTo(Math.max(monotonic, timer.at));
    timer.run();
    await untilIdle();
    return true;
  };

  return {
    // Whole milliseconds, as on a machine. A timer may be due between two of them.
    now: () => Math.floor(wall),
    monotonic: () => monotonic,
    after(milliseconds, run) {
      const timer = { at: monotonic + Math.max(0, milliseconds), run };
      timers.push(timer);
      return () => cancel(timer);
    },
    async advance(duration) {
      const target = monotonic + durationOf(duration);
      await untilIdle();
      while (await runNext(target));
      moveTo(target);
    },
    setWall(time) {
      wall = millisecondsOf(time);
    },
    async until(promise, maxWait = "1h") {
      const bound = monotonic + durationOf(maxWait);
      let isSettled = false;
      const settle = (): void => {
        isSettled = true;
      };
      promise.then(settle, settle);
      await untilIdle();
      while (!isSettled) {
        if (!(await runNext(bound)))
          throw new RangeError(
            "The promise didn't settle in time: no timer is left before the limit.",
          );
      }
      return promise;
    },
    timers: () => timers.length,
  };
}

async function untilIdle(): Promise<void> {
  for (let count = 0; count < turns; count++) await turn();
}

function durationOf(duration: Duration): number {
  const milliseconds = parseDuration(duration);
  if (milliseconds === null)
    throw new RangeError(`Invalid duration: ${duration}. Use a duration such as "90s".`);
  return milliseconds;
}

function millisecondsOf(time: string | number): number {
  const milliseconds = new Date(time).getTime();
  if (Number.isNaN(milliseconds)) throw new RangeError(`Invalid time: ${time}.`);
  return milliseconds;
}
