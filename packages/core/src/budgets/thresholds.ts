import type { BudgetCounterKey } from "../domain/budget.ts";

/** A counter with the limit it was held against and the parts of it to tell of, in order. */
export interface TrackedCounter extends BudgetCounterKey {
  readonly limit: number;
  readonly warnAt: readonly number[];
}

/** What a process knows of the counters it charges, so that each threshold is told once and few are read. */
export interface ThresholdTracker {
  /** Adds what was charged. True when the counter must be read: unknown, last read a second ago, or at a threshold. */
  charge(counter: TrackedCounter, charged: number, at: number): boolean;
  /** Takes what a counter stands at, and returns the thresholds it has newly reached. */
  newlyReached(counter: TrackedCounter, settled: number, at: number): readonly number[];
}

interface CounterState {
  readonly limit: number;
  settled: number;
  readAt: number;
  /** How many thresholds were told. */
  reported: number;
}

const maxReadAgeMs = 1_000;
const maxCounters = 10_000;

export function createThresholdTracker(): ThresholdTracker {
  const counters = new Map<string, CounterState>();

  function know(counter: TrackedCounter): CounterState {
    const name = JSON.stringify([counter.budgetId, counter.subject, counter.periodStart]);
    const known = counters.get(name);
    // Thresholds are parts of the limit: with another one, none of them was told yet.
    if (known?.limit === counter.limit) return known;
    const fresh: CounterState = {
      limit: counter.limit,
      settled: 0,
      readAt: -maxReadAgeMs,
      reported: 0,
    };
    counters.set(name, fresh);
    const [oldest] = counters.keys();
    if (counters.size > maxCounters && oldest !== undefined) counters.delete(oldest);
    return fresh;
  }

  return {
    charge(counter, charged, at) {
      const known = know(counter);
      known.settled += charged;
      return (
        Math.abs(at - known.readAt) >= maxReadAgeMs ||
        reached(counter, known.settled).length > known.reported
      );
    },
    newlyReached(counter, settled, at) {
      const known = know(counter);
      known.settled = settled;
      known.readAt = at;
      const fresh = reached(counter, settled).slice(known.reported);
      known.reported += fresh.length;
      return fresh;
    },
  };
}

function reached({ limit, warnAt }: TrackedCounter, settled: number): readonly number[] {
  return settled === 0 ? [] : warnAt.filter((part) => settled >= part * limit);
}
