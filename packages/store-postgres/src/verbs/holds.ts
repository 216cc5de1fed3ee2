import type { Hold } from "@tollgate/core/store";
import { readRow, type SqlParameters } from "@tollgate/store-sql";
import { arrayOf } from "../database/postgres-dialect.ts";
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

/** Holds as the parameters of the functions that take them. */
export function holdsToParameters(holds: readonly Hold[]): SqlParameters {
  return {
    hold_budget_ids: arrayOf(holds.map(({ budgetId }) => budgetId)),
    hold_subjects: arrayOf(holds.map(({ subject }) => subject)),
    hold_period_starts: arrayOf(holds.map(({ periodStart }) => periodStart)),
    hold_units: arrayOf(holds.map(({ unit }) => unit)),
    hold_amounts: arrayOf(holds.map(({ amount }) => amount)),
    hold_limits: arrayOf(holds.map(({ limit }) => limit)),
    hold_softs: arrayOf(holds.map(({ mode }) => (mode === "soft" ? 1 : 0))),
  };
}

/** Takes all holds, or returns the first that does not fit: then whoever called rolls back what was taken before it. */
export async function takeHolds(
  transaction: Transaction,
  owner: HoldOwner,
  holds: readonly Hold[],
): Promise<Hold | null> {
  if (holds.length === 0) return null;
  const row = await transaction.get(transaction.functions.takeHolds, {
    organization_id: owner.organizationId,
    step_id: owner.stepId,
    attempt: owner.attempt,
    ...holdsToParameters(holds),
  });
  return holds[readRow(row).integer("refused") - 1] ?? null;
}

/** Turns what a Step holds into what was spent. */
export async function settleHolds(
  transaction: Transaction,
  owner: Pick<HoldOwner, "organizationId" | "stepId">,
  charge: Charge,
): Promise<void> {
  await transaction.get(transaction.functions.settleHolds, {
    organization_id: owner.organizationId,
    step_id: owner.stepId,
    usd: charge.usd,
    tokens: charge.tokens,
  });
}
