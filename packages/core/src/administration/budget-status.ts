import type { RaisedBudget } from "../budgets/budget-cache.ts";
import { limitInForce } from "../budgets/limit-in-force.ts";
import { periodEnd, periodStart } from "../budgets/period.ts";
import type { BudgetCounter } from "../domain/budget.ts";
import { read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type { BudgetStatus, BudgetStatusQuery } from "./budget-records.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { budgetStatusQuery } from "./schemas.ts";
import { fromIso, toIso } from "./tenant.ts";

/** The counters of a budget in one of its periods, by what its `each` counts separately. */
export function budgetStatus(
  line: GatewayContext,
  {
    find,
    query: written,
    paging,
  }: {
    readonly find: (id: string) => Promise<RaisedBudget>;
    readonly query: BudgetStatusQuery;
    readonly paging: Paging | undefined;
  },
): List<BudgetStatus> {
  return listOf(
    async (storePaging) => {
      const { id, subject, at } = read(budgetStatusQuery, written);
      const found = await find(id);
      const now = line.clock.now();
      const start = periodStart(found.period, at === undefined ? now : fromIso(at));
      const query = {
        budgetId: found.id,
        periodStart: start,
        ...(subject === undefined ? {} : { subject }),
      };
      const page = await line.store.budgets.counters(query, storePaging);
      const standing = {
        unit: found.unit,
        limit: limitInForce(found, now),
        resetsAt: periodEnd(found.period, start),
      };
      return { ...page, data: page.data.map((counter) => statusOf(counter, standing)) };
    },
    (status) => status,
    paging,
  );
}

function statusOf(
  { budgetId, subject, settled, held, periodStart: start }: BudgetCounter,
  {
    unit,
    limit,
    resetsAt,
  }: Pick<BudgetStatus, "unit" | "limit"> & { readonly resetsAt: number | null },
): BudgetStatus {
  return {
    budgetId,
    subject,
    unit,
    limit,
    settled,
    held,
    remaining: limit - settled - held,
    periodStart: toIso(start),
    resetsAt: toIso(resetsAt),
  };
}
