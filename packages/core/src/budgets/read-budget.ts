import type {
  Budget,
  BudgetMode,
  BudgetPeriod,
  BudgetScope,
  BudgetUnit,
} from "../domain/budget.ts";
import { parseUsd } from "../kernel/nano-usd.ts";

/** A limit in exactly one unit. Dollars are a number or a decimal string. */
export type BudgetLimit =
  | { readonly usd: number | string }
  | { readonly tokens: number }
  | { readonly requests: number };

/** A budget as configured. */
export interface BudgetConfiguration {
  /** Identifies it in errors and reports. At most 255 characters. */
  readonly id: string;
  readonly scope?: BudgetScope;
  readonly limit: BudgetLimit;
  readonly period: BudgetPeriod;
  /** Default `hard`. */
  readonly mode?: BudgetMode;
  /**
   * Fractions of the limit, above 0 and up to 1, at which observers get a `budget.warned`, once each. At most 10. Default
   * `[0.8, 1]`; `[]` for none.
   */
  readonly warnAt?: readonly number[];
}

const defaultWarnings: readonly number[] = [0.8, 1];

/** Converts a validated budget to nanodollars, tokens or requests. */
export function toBudget({
  id,
  scope = {},
  limit,
  period,
  mode = "hard",
  warnAt = defaultWarnings,
}: BudgetConfiguration): Budget {
  const { unit, amount } = toAmount(limit);
  const warnings = [...new Set(warnAt)].sort((a, b) => a - b);
  return { id, scope, unit, limit: amount, period, mode, warnAt: warnings };
}

/** Converts a validated limit or raise to its unit. */
export function toAmount(limit: BudgetLimit): {
  readonly unit: BudgetUnit;
  readonly amount: number;
} {
  if ("usd" in limit) return { unit: "usd", amount: parseUsd(limit.usd) ?? 0 };
  if ("tokens" in limit) return { unit: "tokens", amount: limit.tokens };
  return { unit: "requests", amount: limit.requests };
}
