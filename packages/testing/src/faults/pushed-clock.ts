import { type Clock, systemClock, type TimerOptions } from "@tollgate/core";

/** The machine's time, and a test that can push it forward. */
export interface PushedClock extends Clock {
  /** Moves both times on at once; timers that fall due run, the earliest first. */
  push(milliseconds: number): void;
  /** How many timers wait. */
  timers(): number;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
  readonly options: TimerOptions | undefined;
  cancel: () => void;
}

/**
 * A clock for tests over real sockets and files, where time has to pass by itself: it runs like the machine's, and a
 * test pushes it over a deadline instead of waiting for it.
 */
export function pushedClock(): PushedClock {
  const timers = new Set<Timer>();
  let pushed = 0;
  const monotonic = (): number => systemClock.monotonic() + pushed;

  const arm = (timer: Timer): void => {
    const rest = Math.max(0, timer.at - monotonic());
    timer.cancel = systemClock.after(rest, () => fire(timer), timer.options);
  };
  const fire = (timer: Timer): void => {
    timer.cancel();
    if (timers.delete(timer)) timer.run();
  };

  return {
    now: () => systemClock.now() + pushed,
    monotonic,
    after(milliseconds, run, options) {
      const timer: Timer = { at: monotonic() + milliseconds, run, options, cancel: () => {} };
      timers.add(timer);
      arm(timer);
      return () => {
        timer.cancel();
        timers.delete(timer);
      };
    },
    push(milliseconds) {
      pushed += milliseconds;
      const due = [...timers].filter(({ at }) => at <= monotonic());
      for (const timer of due.sort((a, b) => a.at - b.at)) fire(timer);
      for (const timer of timers) {
        timer.cancel();
        arm(timer);
      }
    },
    timers: () => timers.size,
  };
}
