import type { TrackedCounter } from "../budgets/thresholds.ts";
import { type Hold, isBudgetUnit } from "../domain/budget.ts";
import type { GatewayContext } from "./context.ts";

/** A Step that was settled: what it held at last, and what became of that. */
export interface ChargedStep {
  readonly organizationId: string;
  readonly holds: readonly Hold[];
  readonly charge: { readonly usd: number; readonly tokens: number };
}

/**
 * Tells the observers which budgets have reached a threshold with a Step. It comes after the record, which it cannot
 * fail: where the store does not answer, nobody is warned.
 */
export async function warnOfBudgets(context: GatewayContext, step: ChargedStep): Promise<void> {
  try {
    for (const hold of step.holds) await warnOf(context, step, hold);
  } catch {
    // The next Step on the same counter looks again.
  }
}

async function warnOf(context: GatewayContext, step: ChargedStep, hold: Hold): Promise<void> {
  const { unit } = hold;
  if (!isBudgetUnit(unit)) return;
  const { budgets } = await context.budgets.current();
  const { warnAt = [] } = budgets.find(({ id }) => id === hold.budgetId) ?? {};
  if (warnAt.length === 0) return;
  const counter = { ...hold, warnAt };
  const charged = unit === "requests" ? hold.amount : step.charge[unit];
  if (!context.thresholds.charge(counter, charged, context.clock.now())) return;
  const settled = await settledOn(context, counter);
  const at = context.clock.now();
  for (const threshold of context.thresholds.newlyReached(counter, settled, at))
    context.notify({
      type: "budget.warned",
      at,
      organizationId: step.organizationId,
      budgetId: hold.budgetId,
      subject: hold.subject,
      threshold,
      settled,
      limit: hold.limit,
    });
}

async function settledOn({ store }: GatewayContext, counter: TrackedCounter): Promise<number> {
  const { budgetId, subject, periodStart } = counter;
  const query = { budgetId, subject, periodStart };
  const { data } = await store.budgets.counters(query, { cursor: null, limit: 1 });
  return data[0]?.settled ?? 0;
}
