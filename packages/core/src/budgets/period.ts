import type { BudgetPeriod } from "../domain/budget.ts";

const day = 86_400_000;

/** Start of the period around a time, in UTC. A week starts on Monday, and `total` at 0. */
export function periodStart(period: BudgetPeriod, at: number): number {
  const date = new Date(at);
  switch (period) {
    case "hour":
      return at - (at % 3_600_000);
    case "day":
      return at - (at % day);
    case "week":
      return at - (at % day) - ((date.getUTCDay() + 6) % 7) * day;
    case "month":
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
    case "total":
      return 0;
  }
}

/** End of the period that began at `start`; null for `total`. */
export function periodEnd(period: BudgetPeriod, start: number): number | null {
  const date = new Date(start);
  switch (period) {
    case "hour":
      return start + 3_600_000;
    case "day":
      return start + day;
    case "week":
      return start + 7 * day;
    case "month":
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
    case "total":
      return null;
  }
}
