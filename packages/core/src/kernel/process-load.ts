import { getHeapStatistics } from "node:v8";
import { type Clock, systemClock } from "./clock.ts";

/** How busy this process is. */
export interface ProcessLoad {
  /**
   * How late the event loop is, in milliseconds: the shorter of its last two delays, so one long computation doesn't
   * count. 0 if it was not measured lately.
   */
  loopDelay(): number;
  /** The share of the heap's limit in use, from 0 to 1. */
  heapShare(): number;
}

const forgottenAfterMs = 1_000;
const probeEveryMs = 10;
const heapEveryMs = 100;

/**
 * Measures this process on demand, at most every ten milliseconds: nothing runs in between. The delay is
 * how late a timer of one millisecond fires.
 */
export function createProcessLoad(clock: Clock = systemClock): ProcessLoad {
  let last = 0;
  let before = 0;
  let probedAt: number | null = null;
  let firedAt = Number.NEGATIVE_INFINITY;
  let heap = 0;
  let heapAt = Number.NEGATIVE_INFINITY;

  const fired = (): void => {
    firedAt = clock.monotonic();
    before = last;
    last = lateness(firedAt);
    probedAt = null;
  };
  const lateness = (now: number): number =>
    probedAt === null ? 0 : Math.max(0, now - probedAt - 1);

  return {
    loopDelay() {
      const now = clock.monotonic();
      if (probedAt === null) {
        if (now - firedAt > forgottenAfterMs) {
          before = 0;
          last = 0;
        }
        if (now - firedAt >= probeEveryMs) {
          probedAt = now;
          clock.after(1, fired, { background: true });
        }
        return Math.min(before, last);
      }
      // The current delay isn't over yet.
      return Math.min(last, Math.max(before, lateness(now)));
    },
    heapShare() {
      const now = clock.monotonic();
      if (now - heapAt < heapEveryMs) return heap;
      heapAt = now;
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
      heap = limit > 0 ? used / limit : 0;
      return heap;
    },
  };
}
