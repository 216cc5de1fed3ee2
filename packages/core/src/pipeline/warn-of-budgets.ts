import type { Hold } from "../domain/budget.ts";
import type { Line } from "./line.ts";

/**
 * Tells the observers which soft budgets stand above their limit after a Step. It comes after the record, which it
 * cannot fail: where the store does not answer, nobody is warned.
 */
export async function warnOfBudgets(
  line: Line,
  organizationId: string,
  holds: readonly Hold[],
): Promise<void> {
  for (const hold of holds) {
    if (hold.mode !== "soft") continue;
    const { budgetId, subject, limit } = hold;
    const settled = await settledOn(line, hold);
    if (settled <= limit) continue;
    const at = line.clock.now();
    line.notify({ type: "budget.warned", at, organizationId, budgetId, subject, settled, limit });
  }
}

async function settledOn({ store }: Line, hold: Hold): Promise<number> {
  const { budgetId, subject, periodStart } = hold;
  try {
    const page = await store.budgets.counters(
      { budgetId, subject, periodStart },
      { cursor: null, limit: 1 },
    );
    return page.data[0]?.settled ?? 0;
  } catch {
    return 0;
  }
}
