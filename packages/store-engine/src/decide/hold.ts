import type { BudgetCounter, BudgetCounterKey, Hold, RefusedHold } from "@tollgate/core/store";
import type { Operation } from "../change.ts";
import type { Charge, HoldRecord, StepRecord } from "../records.ts";
import type { View } from "../view.ts";

/** The attempt that amounts are held for. */
export interface Holder {
  readonly organizationId: string;
  readonly stepId: string;
  readonly attempt: number;
}

/** The counters as one decision leaves them: what it does to one of them it sees when it looks at it again. */
export class CounterDraft {
  readonly #view: Pick<View, "counter">;
  readonly #drafted: BudgetCounter[] = [];

  /** Begins with the counters as they are. */
  constructor(view: Pick<View, "counter">) {
    this.#view = view;
  }

  /** Takes all holds; returns the first that does not fit. */
  take(holds: readonly Hold[]): RefusedHold | null {
    for (const hold of holds) {
      const counter = this.#current(hold);
      const left = Math.max(0, hold.limit - counter.settled - counter.held);
      if (hold.mode === "hard" && (hold.limit === 0 || hold.amount > left)) return { hold, left };
      this.#set({ ...counter, held: counter.held + hold.amount });
    }
    return null;
  }

  /** Turns what is held into what was spent. */
  settle(hold: HoldRecord, spent: number): void {
    const counter = this.#current(hold);
    const settled = withinCounter(counter.settled + spent);
    this.#set({ ...counter, settled, held: counter.held - hold.amount });
  }

  /** Moves what is settled. */
  correct(hold: HoldRecord, delta: number): void {
    const counter = this.#current(hold);
    this.#set({ ...counter, settled: withinCounter(counter.settled + delta) });
  }

  /** To be written only if everything fit. */
  operations(): readonly Operation[] {
    return this.#drafted.map((row) => ({ write: "set counter", row }));
  }

  #current(key: Pick<HoldRecord, keyof BudgetCounterKey | "unit">): BudgetCounter {
    const { budgetId, subject, periodStart, unit } = key;
    return (
      this.#drafted.find((counter) => isSameCounter(counter, key)) ??
      this.#view.counter(key) ?? { budgetId, subject, periodStart, unit, settled: 0, held: 0 }
    );
  }

  #set(counter: BudgetCounter): void {
    const place = this.#drafted.findIndex((other) => isSameCounter(other, counter));
    this.#drafted[place < 0 ? this.#drafted.length : place] = counter;
  }
}

/** A counter never goes below 0, and stays where it can be counted exactly. */
function withinCounter(settled: number): number {
  return Math.max(0, Math.min(settled, Number.MAX_SAFE_INTEGER));
}

function isSameCounter(a: BudgetCounterKey, b: BudgetCounterKey): boolean {
  return a.budgetId === b.budgetId && a.subject === b.subject && a.periodStart === b.periodStart;
}

/** Holds as an attempt takes them. */
export function heldFor(holder: Holder, holds: readonly Hold[]): readonly Operation[] {
  const { organizationId, stepId, attempt } = holder;
  return holds.map(({ budgetId, subject, periodStart, unit, amount }) => ({
    write: "insert hold",
    row: {
      organizationId,
      stepId,
      attempt,
      budgetId,
      subject,
      periodStart,
      unit,
      amount,
      settled: null,
    },
  }));
}

/** Turns the running holds of a Step into what was spent, on their counters too. A request hold stays what was held. */
export function settleHolds(
  view: Pick<View, "holds">,
  draft: CounterDraft,
  step: StepRecord,
  charge: Charge,
): readonly Operation[] {
  if (step.holds === 0) return [];
  const running = view.holds(step).filter((hold) => hold.settled === null);
  return running.map((hold) => {
    const settled = hold.unit === "requests" ? hold.amount : charge[hold.unit];
    draft.settle(hold, settled);
    return { write: "settle hold", row: { ...hold, settled } };
  });
}
