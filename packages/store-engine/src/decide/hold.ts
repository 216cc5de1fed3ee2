import type {
  BudgetCounter,
  BudgetCounterKey,
  Hold,
  HoldUnit,
  RefusedHold,
  Step,
} from "@tollgate/core/store";
import type { Operation } from "../change.ts";
import type { Charge, CounterMove, HoldRecord, StepRecord } from "../records.ts";
import type { View } from "../view.ts";

/** The attempt that amounts are held for. */
export interface HoldingAttempt {
  readonly organizationId: string;
  readonly stepId: string;
  readonly attempt: number;
}

/** The counters as one decision leaves them: what it does to one of them it sees when it looks at it again. */
export class CounterDraft {
  readonly #view: Pick<View, "counter">;
  readonly #moves: MutableMove[] = [];

  /** Begins with the counters as they are. */
  constructor(view: Pick<View, "counter">) {
    this.#view = view;
  }

  /** Takes all holds; returns the first that does not fit. */
  take(holds: readonly Hold[]): RefusedHold | null {
    for (const hold of holds) {
      const counter = this.#view.counter(hold);
      const move = this.#move(hold);
      move.floor = hold.floor ?? 0;
      const settled = clampSettled(Math.max(counter?.settled ?? 0, move.floor) + move.settled);
      const left = Math.max(0, hold.limit - settled - (counter?.held ?? 0) - move.held);
      if (hold.mode === "hard" && (hold.limit === 0 || hold.amount > left)) return { hold, left };
      if (isPace(hold.unit)) move.settled += hold.amount;
      else move.held += hold.amount;
      move.taken += hold.amount;
      if (hold.mode === "hard") move.limit = Math.min(hold.limit, move.limit ?? hold.limit);
    }
    return null;
  }

  /** Turns what is held into what was spent. */
  settle(hold: HoldRecord, spent: number): void {
    const move = this.#move(hold);
    // A pace moved when the hold was taken: time goes on, so nothing of it stays reserved.
    if (isPace(hold.unit)) move.settled += spent - hold.amount;
    else {
      move.settled += spent;
      move.held -= hold.amount;
    }
  }

  /** Moves what is settled. */
  correct(hold: HoldRecord, delta: number): void {
    this.#move(hold).settled += delta;
  }

  /** To be written only if everything fit. */
  operations(): readonly Operation[] {
    return this.#moves.map((row) => ({ write: "move counter", row }));
  }

  #move(key: CounterName): MutableMove {
    for (const move of this.#moves) if (isSameCounter(move, key)) return move;
    const { budgetId, subject, periodStart, unit } = key;
    const move: MutableMove = {
      budgetId,
      subject,
      periodStart,
      unit,
      floor: 0,
      settled: 0,
      held: 0,
      taken: 0,
      limit: null,
    };
    this.#moves.push(move);
    return move;
  }
}

type MutableMove = { -readonly [Member in keyof CounterMove]: CounterMove[Member] };

type CounterName = Pick<HoldRecord, keyof BudgetCounterKey | "unit">;

/** A counter once it has moved, whether or not it was there. */
export function moveCounter(counter: BudgetCounter | null, move: CounterMove): BudgetCounter {
  return {
    budgetId: move.budgetId,
    subject: move.subject,
    periodStart: move.periodStart,
    unit: counter?.unit ?? move.unit,
    settled: clampSettled(Math.max(counter?.settled ?? 0, move.floor) + move.settled),
    held: (counter?.held ?? 0) + move.held,
  };
}

/** A counter never goes below 0, and stays where it can be counted exactly. */
function clampSettled(settled: number): number {
  return Math.max(0, Math.min(settled, Number.MAX_SAFE_INTEGER));
}

function isSameCounter(a: BudgetCounterKey, b: BudgetCounterKey): boolean {
  return a.budgetId === b.budgetId && a.subject === b.subject && a.periodStart === b.periodStart;
}

/** The hold that a counter had no room for. */
export function refusedHold(
  holds: readonly Hold[],
  counter: BudgetCounterKey,
  left: number,
): RefusedHold {
  const hold = holds.find((hold) => isSameCounter(hold, counter));
  if (!hold) throw new TypeError("a counter was moved by no hold");
  return { hold, left };
}

/** Holds as an attempt takes them. */
export function insertHolds(holder: HoldingAttempt, holds: readonly Hold[]): readonly Operation[] {
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

function isPace(unit: HoldUnit): boolean {
  return unit === "requests_pace" || unit === "tokens_pace";
}

/** What a hold becomes. A request stays what was held, and a Step in flight is none any more. */
function spentOf({ unit, amount, attempt }: HoldRecord, step: Step, charge: Charge): number {
  switch (unit) {
    case "usd":
    case "tokens":
      return charge[unit];
    case "requests":
    case "requests_pace":
      return amount;
    case "steps":
      return 0;
    case "tokens_pace": {
      const taker = step.attempts.find(({ number }) => number === attempt);
      const estimate = (taker?.estimatedInputTokens ?? 0) + (taker?.estimatedOutputTokens ?? 0);
      return estimate === 0 ? amount : Math.ceil((amount / estimate) * charge.tokens);
    }
  }
}

/** Turns the running holds of a Step into what was spent, on their counters too. */
export function settleHolds(
  view: Pick<View, "holds">,
  draft: CounterDraft,
  step: StepRecord,
  charge: Charge,
): readonly Operation[] {
  if (step.holds === 0) return [];
  const running = view.holds(step).filter((hold) => hold.settled === null);
  return running.map((hold) => {
    const settled = spentOf(hold, step.step, charge);
    draft.settle(hold, settled);
    return { write: "settle hold", row: { ...hold, settled } };
  });
}
