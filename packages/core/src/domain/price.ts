import type { Usage } from "./usage.ts";

/** Where a cost comes from: the provider's own figure, configured prices, a catalog, or nowhere. */
export type PriceSource = "provider" | "custom" | "catalog" | "unknown";

/** Prices of a model in nanodollars per million tokens: whole numbers, taken as a snapshot when a Step opens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Price of prompt tokens read from the provider's cache; absent means the price of input. */
  readonly cachedInput?: number;
  readonly source: "custom" | "catalog";
  /** Names the catalog's release, where the price is from one. */
  readonly version?: string;
}

const million = 1_000_000n;

/**
 * The cost of usage in nanodollars, computed in integers and rounded up once. Reasoning tokens are completion tokens.
 * @throws RangeError when the cost is too large to count exactly.
 */
export function costOf(usage: Usage, price: Price): number {
  const cached = Math.min(usage.cachedTokens ?? 0, usage.promptTokens);
  const uncached = usage.promptTokens - cached;
  const exact =
    uncached * price.input +
    cached * (price.cachedInput ?? price.input) +
    usage.completionTokens * price.output;
  if (exact <= Number.MAX_SAFE_INTEGER) return Math.ceil(exact / 1_000_000);
  const wide =
    BigInt(uncached) * BigInt(price.input) +
    BigInt(cached) * BigInt(price.cachedInput ?? price.input) +
    BigInt(usage.completionTokens) * BigInt(price.output);
  const nano = (wide + million - 1n) / million;
  if (nano > BigInt(Number.MAX_SAFE_INTEGER))
    throw new RangeError("cost is too large to count exactly");
  return Number(nano);
}
