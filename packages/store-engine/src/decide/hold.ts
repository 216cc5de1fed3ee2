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
  readonly #drafted: Draft[] = [];

  /** Begins with the counters as they are. */
  constructor(view: Pick<View, "counter">) {
    this.#view = view;
  }

  /** Takes all holds; returns the first that does not fit. */
  take(holds: readonly Hold[]): RefusedHold | null {
    for (const hold of holds) {
      const counter = this.#draft(hold);
      const left = Math.max(0, hold.limit - counter.settled - counter.held);
      if (hold.mode === "hard" && (hold.limit === 0 || hold.amount > left)) return { hold, left };
      counter.held += hold.amount;
    }
    return null;
  }

  /** Turns what is held into what was spent. */
  settle(hold: HoldRecord, spent: number): void {
    const counter = this.#draft(hold);
    counter.settled = withinCounter(counter.settled + spent);
    counter.held -= hold.amount;
  }

  /** Moves what is settled. */
  correct(hold: HoldRecord, delta: number): void {
    const counter = this.#draft(hold);
    counter.settled = withinCounter(counter.settled + delta);
  }

  /** To be written only if everything fit. */
  operations(): readonly Operation[] {
    return this.#drafted.map((row) => ({ write: "set counter", row }));
  }

  /** A counter to be changed: as it was left, or a copy of it as it is. */
  #draft(key: Pick<HoldRecord, keyof BudgetCounterKey | "unit">): Draft {
    for (const drafted of this.#drafted) if (isSameCounter(drafted, key)) return drafted;
    const known = this.#view.counter(key);
    const { budgetId, subject, periodStart } = key;
    const { unit, settled, held } = known ?? { unit: key.unit, settled: 0, held: 0 };
    const draft = { budgetId, subject, periodStart, unit, settled, held };
    this.#drafted.push(draft);
    return draft;
  }
}

type Draft = { -readonly [Member in keyof BudgetCounter]: BudgetCounter[Member] };

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
