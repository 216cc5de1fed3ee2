import {
  type BudgetCounter,
  type BudgetCounterKey,
  type Hold,
  type HoldUnit,
  isSameCounter,
  type RefusedHold,
  type Step,
} from "@tollgate/core/store";
import type { Charge, CounterMove, HoldRecord, Operation, StepRecord, View } from "./model.ts";

/** The attempt that amounts are held for. */
interface HoldingAttempt {
  readonly organizationId: string;
  readonly stepId: string;
  readonly attempt: number;
}

/** The counter moves of one decision. A later check within the decision includes its earlier moves. */
export class CounterDraft {
  readonly #view: Pick<View, "counter">;
  readonly #moves: MutableMove[] = [];

  /** Starts from the stored counters. */
  constructor(view: Pick<View, "counter">) {
    this.#view = view;
  }

  /** Takes all holds, or returns the first that exceeds its limit. */
  take(holds: readonly Hold[]): RefusedHold | null {
    for (const hold of holds) {
      const counter = this.#view.counter(hold);
      const move = this.#move(hold);
      move.floor = hold.floor ?? 0;
      const settled = clampSettled(Math.max(counter?.settled ?? 0, move.floor) + move.settled);
      const room = hold.limit - settled - (counter?.held ?? 0) - move.held;
      // A pace may be beyond its limit, and stays so for that long.
      const left = move.floor > 0 ? room : Math.max(0, room);
      if (hold.mode === "hard" && (hold.limit === 0 || hold.amount > left)) return { hold, left };
      if (isPace(hold.unit)) move.settled += hold.amount;
      else move.held += hold.amount;
      move.taken += hold.amount;
      if (hold.mode === "hard") move.limit = Math.min(hold.limit, move.limit ?? hold.limit);
    }
    return null;
  }

  /** Replaces a held amount by the amount spent. */
  settle(hold: HoldRecord, spent: number): void {
    const move = this.#move(hold);
    // Taking a hold moves a pace at once, because a pace reserves nothing.
    if (isPace(hold.unit)) move.settled += spent - hold.amount;
    else {
      move.settled += spent;
      move.held -= hold.amount;
    }
  }

  /** Adds a correction to the settled amount. */
  correct(hold: HoldRecord, delta: number): void {
    this.#move(hold).settled += delta;
  }

  /** The paces this decision takes from, after its moves. */
  paces(): readonly number[] {
    return this.#moves.flatMap((move) => {
      if (move.floor === 0) return [];
      const settled = this.#view.counter(move)?.settled ?? 0;
      return clampSettled(Math.max(settled, move.floor) + move.settled);
    });
  }

  /** The moves to write. Use them only if every hold fits. */
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
      settled: 0,
      held: 0,
      floor: 0,
      taken: 0,
      limit: null,
    };
    this.#moves.push(move);
    return move;
  }
}

type MutableMove = { -readonly [Member in keyof CounterMove]: CounterMove[Member] };

type CounterName = Pick<HoldRecord, keyof BudgetCounterKey | "unit">;

/** The paces that these holds have taken from, as they are now. Each once, as a draft lists them. */
export function currentPaces(
  view: Pick<View, "counter">,
  holds: readonly Hold[],
): readonly number[] {
  return holds
    .filter((hold, at) => holds.findIndex((other) => isSameCounter(hold, other)) === at)
    .flatMap((hold) => (hold.floor ? (view.counter(hold)?.settled ?? 0) : []));
}

/** A counter after a move. A missing counter starts at 0. */
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

/** Keeps a settled amount between 0 and the largest safe integer. */
function clampSettled(settled: number): number {
  return Math.max(0, Math.min(settled, Number.MAX_SAFE_INTEGER));
}

/** Whether two records are the same hold of one Step. */
export function isSameHold(a: HoldRecord, b: HoldRecord): boolean {
  return a.attempt === b.attempt && isSameCounter(a, b);
}

/** The hold that a counter has no room for. */
export function refusedHold(
  holds: readonly Hold[],
  counter: BudgetCounterKey,
  left: number,
): RefusedHold {
  const hold = holds.find((hold) => isSameCounter(hold, counter));
  if (!hold) throw new TypeError("No hold moved this counter.");
  return { hold, left };
}

/** How many of these holds settle with their attempt. */
export function heldUntilSettled(holds: readonly Hold[]): number {
  return holds.reduce((count, { unit }) => (isSettledWhenTaken(unit) ? count : count + 1), 0);
}

/** A pace of requests reserves nothing, and a request costs what it takes. So its hold has nothing left to settle. */
function isSettledWhenTaken(unit: HoldUnit): boolean {
  return unit === "requests_pace";
}

/** Writes the holds of an attempt. */
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
      settled: isSettledWhenTaken(unit) ? amount : null,
    },
  }));
}

/** A pace follows the clock. */
export function isPace(unit: HoldUnit): boolean {
  return unit === "requests_pace" || unit === "tokens_pace";
}

/** The amount a hold settles at. A hold of requests keeps its amount. A Step in flight no longer counts. */
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
      if (estimate === 0) return amount;
      return Math.min(Math.ceil((amount / estimate) * charge.tokens), Number.MAX_SAFE_INTEGER);
    }
  }
}

/** Settles the running holds of a Step and their counters at the amount spent. */
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
