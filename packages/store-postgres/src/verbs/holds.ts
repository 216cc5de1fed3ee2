import type { Hold } from "@tollgate/core/store";
import { holding } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";

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
export async function takeHolds(
  transaction: Transaction,
  owner: HoldOwner,
  holds: readonly Hold[],
): Promise<Hold | null> {
  if (holds.length === 0) return null;
  const takeAll = async (): Promise<Hold | null> => {
    for (const hold of holds) if (!(await takeHold(transaction, owner, hold))) return hold;
    return null;
  };
  // The first that does not fit has written nothing, so one alone needs no way back.
  return holds.length === 1 ? takeAll() : await transaction.unless(takeAll);
}

async function takeHold(transaction: Transaction, owner: HoldOwner, hold: Hold): Promise<boolean> {
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
  if ((await transaction.run(holding.take, parameters)) === 0) return false;
  await transaction.run(holding.record, parameters);
  return true;
}

/** Turns what a Step holds into what was spent. */
export async function settleHolds(
  transaction: Transaction,
  owner: Pick<HoldOwner, "organizationId" | "stepId">,
  charge: Charge,
): Promise<void> {
  const parameters = {
    organization_id: owner.organizationId,
    step_id: owner.stepId,
    usd: charge.usd,
    tokens: charge.tokens,
  };
  await transaction.run(locking.counters, parameters);
  await transaction.run(holding.charge, parameters);
  await transaction.run(holding.settle, parameters);
}
