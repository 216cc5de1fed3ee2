import { periodEnd, periodStart } from "../budgets/period.ts";
import type { Budget, BudgetCounter } from "../domain/budget.ts";
import type { Line } from "../pipeline/line.ts";
import type { BudgetStatus } from "./budget-records.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { toIso } from "./tenant.ts";

/** The counters of a budget in its current period, by what its `each` counts separately. */
export function budgetStatus(
  line: Line,
  {
    budget,
    subject,
    paging,
  }: {
    readonly budget: Promise<Budget>;
    readonly subject: string | undefined;
    readonly paging: Paging | undefined;
  },
): List<BudgetStatus> {
  return listOf(
    async (storePaging) => {
      const { id, period, limit } = await budget;
      const start = periodStart(period, line.clock.now());
      const query = {
        budgetId: id,
        periodStart: start,
        ...(subject === undefined ? {} : { subject }),
      };
      const page = await line.store.budgets.counters(query, storePaging);
      return {
        ...page,
        data: page.data.map((counter) =>
          statusOf(counter, { limit, resetsAt: periodEnd(period, start) }),
        ),
      };
    },
    (status) => status,
    paging,
  );
}

function statusOf(
  { budgetId, subject, unit, settled, held, periodStart: start }: BudgetCounter,
  { limit, resetsAt }: { readonly limit: number; readonly resetsAt: number | null },
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
