import type { BudgetCounter, BudgetCounterKey } from "@tollgate/core/store";
import type { HoldRecord, SessionState, StepRecord, View } from "@tollgate/store-engine";
import type { KnownRecent } from "./known-recent.ts";
import { createSlots, type Slots } from "./slots.ts";

type Key = NonNullable<ReturnType<View["key"]>>;
type Response = NonNullable<ReturnType<View["response"]>>;

/**
 * A cache of rows from one transaction to the next, while no other process writes. Applying a change keeps them current.
 * Any other write clears them.
 */
export interface KnownRows {
  readonly keys: Slots<Key>;
  readonly sessions: Slots<SessionState>;
  /** The Session of a Turn. */
  readonly turns: Slots<string>;
  readonly responses: Slots<Response>;
  /** The open Steps. */
  readonly steps: Slots<KnownStep>;
  readonly counters: KnownCounters;
  readonly recent: KnownRecent;
  clear(): void;
}

/** A Step, and its holds once they were read. */
interface KnownStep {
  record: StepRecord;
  holds: readonly HoldRecord[] | null;
}

interface KnownCounters {
  get(key: BudgetCounterKey): BudgetCounter | null;
  set(counter: BudgetCounter): void;
  clear(): void;
}

/** Creates an empty cache of rows. `ways` says how many Sessions and Steps with similar names it has room for. */
export function createKnownRows(
  recent: KnownRecent,
  { ways = 1 }: { readonly ways?: number } = {},
): KnownRows {
  const keys = createSlots<Key>(1);
  const sessions = createSlots<SessionState>(ways);
  const turns = createSlots<string>(1);
  const responses = createSlots<Response>(1);
  const steps = createSlots<KnownStep>(ways);
  const counters = createKnownCounters();
  return {
    keys,
    sessions,
    turns,
    responses,
    steps,
    counters,
    recent,
    clear() {
      for (const rows of [keys, sessions, turns, responses, steps, counters, recent]) rows.clear();
    },
  };
}

/** For each budget and subject, the period that was read last. */
function createKnownCounters(): KnownCounters {
  const counters = createSlots<BudgetCounter>(1);
  return {
    get({ budgetId, subject, periodStart }) {
      const counter = counters.get(budgetId, subject);
      return counter?.periodStart === periodStart ? counter : null;
    },
    set: (counter) => counters.set(counter.budgetId, counter.subject, counter),
    clear: counters.clear,
  };
}
