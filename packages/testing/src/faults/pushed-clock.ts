import { type Clock, systemClock, type TimerOptions } from "@tollgate/core";

/** The machine's clock, which a test can push forward. */
export interface PushedClock extends Clock {
  /** Advances both times at once, and runs due timers, the earliest first. */
  push(milliseconds: number): void;
  /** The number of pending timers. */
  timers(): number;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
  readonly options: TimerOptions | undefined;
  cancel: () => void;
}

/**
 * A clock for tests with real sockets and files, which need time to pass. It runs like the machine's clock, and a test
 * pushes it past a deadline instead of waiting.
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
