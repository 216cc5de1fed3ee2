import type { Usage } from "./usage.ts";

/** Where a cost comes from: the provider's own figure, configured prices, a catalog, or nowhere. */
export type PriceSource = "provider" | "custom" | "catalog" | "unknown";

/** Prices of a model in nanodollars per million tokens: whole numbers, taken as a snapshot when a Step opens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Price of prompt tokens read from the provider's cache; absent means the price of input. */
  readonly cachedInput?: number;
  /** Prices of the whole request instead, when its prompt is longer than a number of tokens. */
  readonly longPrompt?: LongPromptPrice;
  readonly source: "custom" | "catalog";
  /** Names the catalog's release, where the price is from one. */
  readonly version?: string;
}

/** What a request costs whose prompt has more than `above` tokens. */
export interface LongPromptPrice extends Rates {
  readonly above: number;
}

interface Rates {
  readonly input: number;
  readonly output: number;
  readonly cachedInput?: number;
}

const million = 1_000_000n;

/**
 * The cost of usage in nanodollars, computed in integers and rounded up once. Reasoning tokens are completion tokens.
 * What is more than can be counted exactly (9 million dollars) is the most that can: it fits no budget that has room
 * for anything else, and no record fails over it.
 */
export function costOf(usage: Usage, price: Price): number {
  const cached = Math.min(usage.cachedTokens ?? 0, usage.promptTokens);
  const uncached = usage.promptTokens - cached;
  const rates = ratesOf(usage, price);
  const exact =
    uncached * rates.input +
    cached * (rates.cachedInput ?? rates.input) +
    usage.completionTokens * rates.output;
  if (exact <= Number.MAX_SAFE_INTEGER) return Math.ceil(exact / 1_000_000);
  const wide =
    BigInt(uncached) * BigInt(rates.input) +
    BigInt(cached) * BigInt(rates.cachedInput ?? rates.input) +
    BigInt(usage.completionTokens) * BigInt(rates.output);
  return Math.min(Number((wide + million - 1n) / million), Number.MAX_SAFE_INTEGER);
}

function ratesOf(usage: Usage, price: Price): Rates {
  const long = price.longPrompt;
  return long !== undefined && usage.promptTokens > long.above ? long : price;
}
