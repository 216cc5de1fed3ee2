import type { Hold, RefusedHold } from "@tollgate/core/store";
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

/**
 * Turns what a Step holds into what was spent and takes all the others, or returns the first that does not fit: then
 * whoever called rolls back.
 */
export async function exchangeHolds(
  transaction: Transaction,
  { organizationId, stepId, attempt }: HoldOwner,
  { spent, holds }: { readonly spent: Charge; readonly holds: readonly Hold[] },
): Promise<RefusedHold | null> {
  const row = readRow(
    await transaction.get(transaction.functions.exchangeHolds, {
      organization_id: organizationId,
      step_id: stepId,
      usd: spent.usd,
      tokens: spent.tokens,
      attempt,
      ...holdsToParameters(holds),
    }),
  );
  const hold = holds[row.integer("refused") - 1];
  return hold ? { hold, left: row.integer("hold_left") } : null;
}
