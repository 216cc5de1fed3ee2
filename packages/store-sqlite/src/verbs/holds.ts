import type { Hold, RefusedHold } from "@tollgate/core/store";
import { holding, readRow } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";

/** The attempt that amounts are held for. */
export interface HoldOwner {
  readonly organizationId: string;
  readonly stepId: string;
  readonly attempt: number;
}

/** What was spent: nanodollars and tokens. */
export interface Charge {
  readonly usd: number;
  readonly tokens: number;
}

/** Takes all holds, or none and returns the first that does not fit. */
export function takeHolds(
  transaction: Transaction,
  owner: HoldOwner,
  holds: readonly Hold[],
): RefusedHold | null {
  if (holds.length === 0) return null;
  const takeAll = (): RefusedHold | null => {
    const hold = holds.find((hold) => !takeHold(transaction, owner, hold));
    return hold ? { hold, left: leftFor(transaction, hold) } : null;
  };
  // The first that does not fit has written nothing, so one alone needs no way back.
  return holds.length === 1 ? takeAll() : transaction.unless(takeAll);
}

function takeHold(transaction: Transaction, owner: HoldOwner, hold: Hold): boolean {
  const parameters = {
    organization_id: owner.organizationId,
    step_id: owner.stepId,
    attempt: owner.attempt,
    budget_id: hold.budgetId,
    subject: hold.subject,
    period_start: hold.periodStart,
    unit: hold.unit,
    amount: hold.amount,
    limit: hold.limit,
    soft: hold.mode === "soft" ? 1 : 0,
  };
  if (transaction.run(holding.take, parameters) === 0) return false;
  transaction.run(holding.record, parameters);
  return true;
}

function leftFor(transaction: Transaction, hold: Hold): number {
  const row = transaction.get(holding.used, {
    budget_id: hold.budgetId,
    subject: hold.subject,
    period_start: hold.periodStart,
  });
  return Math.max(0, hold.limit - (row === undefined ? 0 : readRow(row).integer("used")));
}

/** Turns what a Step holds into what was spent. */
export function settleHolds(
  transaction: Transaction,
  owner: Pick<HoldOwner, "organizationId" | "stepId">,
  charge: Charge,
): void {
  const parameters = {
    organization_id: owner.organizationId,
    step_id: owner.stepId,
    usd: charge.usd,
    tokens: charge.tokens,
  };
  transaction.run(holding.charge, parameters);
  transaction.run(holding.settle, parameters);
}
