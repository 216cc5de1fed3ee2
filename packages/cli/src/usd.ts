import { type BudgetDrift, formatUsd, type RateLimitStatus } from "@tollgate/core";

/** Formats nanodollars as dollars. Null means an unknown price, and stays null. */
export function usd(nanoUsd: number | null): string | null {
  return nanoUsd === null ? null : formatUsd(nanoUsd);
}

/** Formats an amount with its unit: `$0.50`, `1 request`, `2 tokens`. */
export function amount(value: number, unit: BudgetDrift["unit"] | RateLimitStatus["unit"]): string {
  if (unit === "usd") return formatUsd(value);
  return `${value} ${value === 1 ? unit.slice(0, -1) : unit}`;
}
