import type {
  Budget,
  BudgetMode,
  BudgetPeriod,
  BudgetScope,
  BudgetUnit,
} from "../domain/budget.ts";
import { parseModelId } from "../domain/model-id.ts";
import { listed } from "../domain/pattern.ts";
import { parseUsd } from "../kernel/nano-usd.ts";

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
}

const periods: readonly string[] = ["hour", "day", "week", "month", "total"];
const units: readonly BudgetUnit[] = ["usd", "tokens", "requests"];
const each: readonly unknown[] = [undefined, "key", "user", "organization"];
const selectors = ["organization", "user", "key", "gateway", "connection", "model", "each"];

/** A configured budget in nanodollars, tokens or requests, or what is wrong with it. */
export function readBudget(
  written: BudgetConfiguration,
):
  | { readonly budget: Budget; readonly problems: readonly [] }
  | { readonly budget: null; readonly problems: readonly string[] } {
  const { id, scope = {}, period, mode = "hard" } = written;
  const { unit, limit } = readLimit(written.limit);
  const problems = [
    typeof id === "string" && /^[\x21-\x7e]{1,255}$/.test(id)
      ? []
      : "its id must be 1 to 255 visible ASCII characters",
    limit === null ? "its limit must be one of usd, tokens or requests, a whole amount from 0" : [],
    periods.includes(period) ? [] : `its period must be one of ${periods.join(", ")}`,
    mode === "hard" || mode === "soft" ? [] : "its mode must be hard or soft",
    ...scopeProblems(scope),
  ].flat();
  if (problems.length > 0 || unit === null || limit === null) {
    return {
      budget: null,
      problems: problems.map((problem) => `Budget ${String(id)}: ${problem}.`),
    };
  }
  return { budget: { id, scope, unit, limit, period, mode }, problems: [] };
}

function readLimit(written: BudgetLimit): {
  readonly unit: BudgetUnit | null;
  readonly limit: number | null;
} {
  const given = units.filter((unit) => written != null && Object.hasOwn(written, unit));
  const [unit, ...others] = given;
  if (unit === undefined || others.length > 0) return { unit: null, limit: null };
  const amount: unknown = Object.entries(written).find(([name]) => name === unit)?.[1];
  if (unit === "usd") {
    return {
      unit,
      limit: typeof amount === "number" || typeof amount === "string" ? parseUsd(amount) : null,
    };
  }
  return {
    unit,
    limit:
      typeof amount === "number" && Number.isSafeInteger(amount) && amount >= 0 ? amount : null,
  };
}

function scopeProblems(scope: BudgetScope): readonly string[] {
  const unknown = Object.keys(scope).filter((name) => !selectors.includes(name));
  const patterns = scope.model === undefined ? [] : listed(scope.model);
  return [
    unknown.map((name) => `its scope has no selector ${name}`),
    each.includes(scope.each) ? [] : "each must be key, user or organization",
    patterns
      .filter((pattern) => parseModelId(pattern) === null)
      .map((pattern) => `${pattern} is not a model pattern <gateway>/<vendor>/<model>`),
  ].flat();
}
