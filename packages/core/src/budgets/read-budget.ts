import type {
  Budget,
  BudgetMode,
  BudgetPeriod,
  BudgetScope,
  BudgetUnit,
} from "../domain/budget.ts";
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
  /**
   * At which parts of the limit, above 0 and up to 1, the observers get a `budget.warned`, once each. At most 10;
   * default `[0.8, 1]`, none with `[]`.
   */
  readonly warnAt?: readonly number[];
}

const defaultWarnings: readonly number[] = [0.8, 1];

/** A budget that passed its schema, in nanodollars, tokens or requests. */
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

/** A limit or a raise that passed its schema, in its unit. */
export function toAmount(limit: BudgetLimit): {
  readonly unit: BudgetUnit;
  readonly amount: number;
} {
  if ("usd" in limit) return { unit: "usd", amount: parseUsd(limit.usd) ?? 0 };
  if ("tokens" in limit) return { unit: "tokens", amount: limit.tokens };
  return { unit: "requests", amount: limit.requests };
}
