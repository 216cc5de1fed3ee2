import type { BudgetCounterKey } from "../domain/budget.ts";

/** A counter with its limit, and the fractions of it at which to warn, in order. */
export interface TrackedCounter extends BudgetCounterKey {
  readonly limit: number;
  readonly warnAt: readonly number[];
}

/** Tracks the counters that this process charges. It finds each threshold once and seldom needs to read the store. */
export interface ThresholdTracker {
  /**
   * Adds a charge. Returns true if the counter must be read: it is unknown, was read a second ago, or may be at a
   * threshold.
   */
  charge(counter: TrackedCounter, charged: number, at: number): boolean;
  /** Sets a counter's settled amount. Returns the thresholds it has reached since the last call. */
  newlyReached(counter: TrackedCounter, settled: number, at: number): readonly number[];
}

interface CounterState {
  readonly limit: number;
  settled: number;
  readAt: number;
  /** The highest threshold that was reported. */
  reported: number;
}

const maxReadAgeMs = 1_000;
const maxCounters = 10_000;

export function createThresholdTracker(): ThresholdTracker {
  const counters = new Map<string, CounterState>();

  function stateOf(counter: TrackedCounter): CounterState {
    const name = JSON.stringify([counter.budgetId, counter.subject, counter.periodStart]);
    const known = counters.get(name);
    // Thresholds are fractions of the limit, so a new limit starts over.
    if (known?.limit === counter.limit) return known;
    const added: CounterState = {
      limit: counter.limit,
      settled: 0,
      readAt: -maxReadAgeMs,
      reported: 0,
    };
    counters.set(name, added);
    const [oldest] = counters.keys();
    if (counters.size > maxCounters && oldest !== undefined) counters.delete(oldest);
    return added;
  }

  return {
    charge(counter, charged, at) {
      const known = stateOf(counter);
      known.settled += charged;
      return Math.abs(at - known.readAt) >= maxReadAgeMs || reached(counter, known).length > 0;
    },
    newlyReached(counter, settled, at) {
      const known = stateOf(counter);
      known.settled = settled;
      known.readAt = at;
      const added = reached(counter, known);
      known.reported = added.at(-1) ?? known.reported;
      return added;
    },
  };
}

/** The thresholds that are reached and above those that were reported. */
function reached(
  { limit, warnAt }: TrackedCounter,
  { settled, reported }: CounterState,
): readonly number[] {
  return settled === 0 ? [] : warnAt.filter((part) => part > reported && settled >= part * limit);
}
