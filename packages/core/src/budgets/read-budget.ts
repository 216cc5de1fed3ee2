import type {
  Budget,
  BudgetMode,
  BudgetPeriod,
  BudgetScope,
  BudgetUnit,
} from "../domain/budget.ts";
import { readAmount } from "./read-amount.ts";
import { scopeProblems } from "./scope-problems.ts";

/** A limit in exactly one unit; dollars as a number or a decimal string. */
export type BudgetLimit =
  | { readonly usd: number | string }
  | { readonly tokens: number }
  | { readonly requests: number };

/** A budget as it is written in a configuration. */
export interface BudgetConfiguration {
  /** Names it in errors and reports; at most 255 characters. */
  readonly id: string;
  readonly scope?: BudgetScope;
  readonly limit: BudgetLimit;
  readonly period: BudgetPeriod;
  /** Default `hard`. */
  readonly mode?: BudgetMode;
  /**
   * At which parts of the limit, above 0 and up to 1, the observers get a `budget.warned`, once each. At most 10;
   * default `[0.8, 1]`, none with `[]`.
   */
  readonly warnAt?: readonly number[];
}

const members = ["id", "scope", "limit", "period", "mode", "warnAt"];
const periods: readonly string[] = ["hour", "day", "week", "month", "total"];
const units: readonly BudgetUnit[] = ["usd", "tokens", "requests"];
const defaultWarnings: readonly number[] = [0.8, 1];
const mostWarnings = 10;

/** A configured budget in nanodollars, tokens or requests, or what is wrong with it. */
export function readBudget(
  written: BudgetConfiguration,
):
  | { readonly budget: Budget; readonly problems: readonly [] }
  | { readonly budget: null; readonly problems: readonly string[] } {
  const { id, scope = {}, period, mode = "hard", warnAt = defaultWarnings } = written;
  const amount = readAmount(written.limit);
  const problems = [
    Object.keys(written)
      .filter((name) => !members.includes(name))
      .map((name) => `it has no member ${name}`),
    typeof id === "string" && /^[\x21-\x7e]{1,255}$/.test(id)
      ? []
      : "its id must be 1 to 255 visible ASCII characters",
    amount === null ? `its limit must be one of ${units.join(", ")}, a whole amount from 0` : [],
    periods.includes(period) ? [] : `its period must be one of ${periods.join(", ")}`,
    mode === "hard" || mode === "soft" ? [] : "its mode must be hard or soft",
    isWarnings(warnAt)
      ? []
      : `its warnAt must be at most ${mostWarnings} numbers above 0 and up to 1`,
    ...scopeProblems(scope),
  ].flat();
  if (problems.length > 0 || amount === null) {
    return {
      budget: null,
      problems: problems.map((problem) => `Budget ${String(id)}: ${problem}.`),
    };
  }
  const { unit, amount: limit } = amount;
  const warnings = [...new Set(warnAt)].sort((a, b) => a - b);
  return { budget: { id, scope, unit, limit, period, mode, warnAt: warnings }, problems: [] };
}

function isWarnings(warnAt: unknown): boolean {
  return (
    Array.isArray(warnAt) &&
    warnAt.length <= mostWarnings &&
    warnAt.every((part) => typeof part === "number" && part > 0 && part <= 1)
  );
}
