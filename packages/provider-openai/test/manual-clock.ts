import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@tollgate/core/provider";

/** A clock that a test moves. */
export interface ManualClock extends Clock {
  advance(milliseconds: number): void;
  /** Resolves when something waits for the clock. */
  waiting(): Promise<void>;
  /** Resolves when nothing waits for the clock. */
  idle(): Promise<void>;
}

export function manualClock(): ManualClock {
  let now = 0;
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  return {
    now: () => now,
    monotonic: () => now,
    after(milliseconds, run) {
      const timer = { at: now + milliseconds, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(milliseconds) {
      now += milliseconds;
      for (const timer of [...timers].filter(({ at }) => at <= now)) {
        timers.delete(timer);
        timer.run();
      }
    },
    async waiting() {
      while (timers.size === 0) await nextTurn();
    },
    async idle() {
      while (timers.size > 0) await nextTurn();
    },
  };
}
