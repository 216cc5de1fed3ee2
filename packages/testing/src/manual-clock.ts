import { setImmediate as turn } from "node:timers/promises";
import { type Clock, type Duration, parseDuration } from "@tollgate/core";

/** Time that stands still until a test moves it. Timers run on monotonic time, as on a machine. */
export interface ManualClock extends Clock {
  /**
   * Moves both times on, once what is going on has come to rest. Each timer that falls due runs at its moment, the
   * earliest first, and what it sets going comes to rest before the next, so that timers it sets are met too.
   * @throws RangeError for what is no duration
   */
  advance(duration: Duration): Promise<void>;
  /** Sets the wall clock alone, as an operator would: to an ISO 8601 time, or milliseconds since the epoch. */
  setWall(time: string | number): void;
  /**
   * Moves from timer to timer until the promise settles, and gives what it settles with.
   * @throws RangeError when it has not settled after `most` (default 1 h)
   */
  until<Result>(promise: Promise<Result>, maxWait?: Duration): Promise<Result>;
  /** How many timers are waiting. */
  timers(): number;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** Where a manual clock starts unless told otherwise. */
const defaultStart = "2026-01-01T00:00:00.000Z";
/** Turns of the event loop in which what was set going must come to rest. */
const turns = 3;

/** A clock for tests that starts at an ISO 8601 time; default the beginning of 2026, UTC. */
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
    // Whole milliseconds, as a machine's wall clock gives them; a timer may fall due between two.
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
          throw new RangeError("No timer within the bound lets the promise settle.");
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
  if (milliseconds === null) throw new RangeError(`${duration} is not a duration such as "90s".`);
  return milliseconds;
}

function millisecondsOf(time: string | number): number {
  const milliseconds = new Date(time).getTime();
  if (Number.isNaN(milliseconds)) throw new RangeError(`${time} is not a time.`);
  return milliseconds;
}
