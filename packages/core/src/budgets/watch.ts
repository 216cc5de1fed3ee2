import type { BudgetCounterKey } from "../domain/budget.ts";

/** A counter with the limit it was held against and the parts of it to tell of, in order. */
export interface WatchedCounter extends BudgetCounterKey {
  readonly limit: number;
  readonly warnAt: readonly number[];
}

/** What a process knows of the counters it charges, so that each threshold is told once and few are read. */
export interface BudgetWatch {
  /** Adds what was charged. True when the counter must be read: unknown, last read a second ago, or at a threshold. */
  charge(counter: WatchedCounter, charged: number, at: number): boolean;
  /** Takes what a counter stands at, and returns the thresholds it has newly reached. */
  take(counter: WatchedCounter, settled: number, at: number): readonly number[];
}

interface Known {
  readonly limit: number;
  settled: number;
  readAt: number;
  /** How many thresholds were told. */
  told: number;
}

const longestUnread = 1_000;
const mostCounters = 10_000;

export function createBudgetWatch(): BudgetWatch {
  const counters = new Map<string, Known>();

  function know(counter: WatchedCounter): Known {
    const name = JSON.stringify([counter.budgetId, counter.subject, counter.periodStart]);
    const known = counters.get(name);
    // Thresholds are parts of the limit: with another one, none of them was told yet.
    if (known?.limit === counter.limit) return known;
    const fresh: Known = { limit: counter.limit, settled: 0, readAt: -longestUnread, told: 0 };
    counters.set(name, fresh);
    const [oldest] = counters.keys();
    if (counters.size > mostCounters && oldest !== undefined) counters.delete(oldest);
    return fresh;
  }

  return {
    charge(counter, charged, at) {
      const known = know(counter);
      known.settled += charged;
      return (
        Math.abs(at - known.readAt) >= longestUnread ||
        reached(counter, known.settled).length > known.told
      );
    },
    take(counter, settled, at) {
      const known = know(counter);
      known.settled = settled;
      known.readAt = at;
      const fresh = reached(counter, settled).slice(known.told);
      known.told += fresh.length;
      return fresh;
    },
  };
}

function reached({ limit, warnAt }: WatchedCounter, settled: number): readonly number[] {
  return settled === 0 ? [] : warnAt.filter((part) => settled >= part * limit);
}
