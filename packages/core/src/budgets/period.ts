import type { BudgetPeriod } from "../domain/budget.ts";

const hour = 3_600_000;
const day = 24 * hour;

/** When a period begins and ends, in UTC. A week begins on Monday, and `total` at 0. */
interface PeriodBounds {
  startAt(time: number): number;
  endOf(start: number): number | null;
}

const bounds: Readonly<Record<BudgetPeriod, PeriodBounds>> = {
  hour: { startAt: (time) => time - (time % hour), endOf: (start) => start + hour },
  day: { startAt: startOfDay, endOf: (start) => start + day },
  week: {
    startAt: (time) => startOfDay(time) - ((new Date(time).getUTCDay() + 6) % 7) * day,
    endOf: (start) => start + 7 * day,
  },
  month: { startAt: (time) => startOfMonth(time, 0), endOf: (start) => startOfMonth(start, 1) },
  total: { startAt: () => 0, endOf: () => null },
};

function startOfDay(time: number): number {
  return time - (time % day);
}

function startOfMonth(time: number, later: 0 | 1): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later, 1);
}

/** Start of the period around a time. */
export function periodStart(period: BudgetPeriod, at: number): number {
  return bounds[period].startAt(at);
}

/** End of the period that began at `start`; null for `total`. */
export function periodEnd(period: BudgetPeriod, start: number): number | null {
  return bounds[period].endOf(start);
}
