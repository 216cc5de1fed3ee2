import type { BudgetUnit } from "../domain/budget.ts";
import { parseUsd } from "../kernel/nano-usd.ts";

const units: readonly BudgetUnit[] = ["usd", "tokens", "requests"];

/** An amount in exactly one unit, as a limit or a raise is written; null for anything else. */
export function readAmount(
  written: unknown,
): { readonly unit: BudgetUnit; readonly amount: number } | null {
  if (typeof written !== "object" || written === null) return null;
  const [given, ...others] = Object.entries(written);
  const unit = units.find((one) => one === given?.[0]);
  if (given === undefined || unit === undefined || others.length > 0) return null;
  const amount = unit === "usd" ? nanoUsdOf(given[1]) : countOf(given[1]);
  return amount === null ? null : { unit, amount };
}

function nanoUsdOf(amount: unknown): number | null {
  return typeof amount === "number" || typeof amount === "string" ? parseUsd(amount) : null;
}

function countOf(amount: unknown): number | null {
  return typeof amount === "number" && Number.isSafeInteger(amount) && amount >= 0 ? amount : null;
}
