import { namesOf } from "../kernel/names-of.ts";
import { standardTier } from "./service-tier.ts";
import type { Usage, UsageBasis, UsageDetails } from "./usage.ts";

/** Where a cost comes from: the provider's own figure, configured prices, a catalog, or nowhere. */
export type PriceSource = "provider" | "custom" | "catalog" | "unknown";

/** Prices by kind of token, in whole nanodollars per million tokens. An absent one defaults to another, as noted. */
export interface Rates {
  readonly input: number;
  readonly output: number;
  /** Prompt tokens read from the provider's cache. Default: `input`. */
  readonly cachedInput?: number;
  /** Prompt tokens written to the provider's cache for five minutes or an unknown time. Default: `input`. */
  readonly cacheWrite5m?: number;
  /** Prompt tokens written to the provider's cache for an hour. Default: `cacheWrite5m`. */
  readonly cacheWrite1h?: number;
  /** Reasoning tokens, if they have a separate price. Default: `output`. */
  readonly reasoning?: number;
  /** The defaults of this and the next three are `input` or `output`. */
  readonly audioInput?: number;
  readonly audioOutput?: number;
  readonly imageInput?: number;
  readonly imageOutput?: number;
}

/** The prices of one service tier. */
export interface TierPrice extends Rates {
  /** Nanodollars per request, in addition to its tokens. Default: 0; for a tier, the standard tier's. */
  readonly request?: number;
  /** Prices that replace these for the whole request if its prompt is long, in ascending order of length. */
  readonly longPrompt?: readonly LongPromptPrice[];
}

/** Prices for requests with more than `above` prompt tokens. */
export interface LongPromptPrice extends Rates {
  readonly above: number;
}

/** The prices of a model by service tier, prompt length and kind of token. Each Step records them as it opens. */
export interface Price extends TierPrice {
  /** The prices of other tiers. A tier that isn't listed has no known price. */
  readonly tiers?: Readonly<Record<string, TierPrice>>;
  readonly source: "custom" | "catalog";
  /** The catalog's release, if the price is from a catalog. */
  readonly version?: string;
}

const rateNames = namesOf({
  input: true,
  output: true,
  cachedInput: true,
  cacheWrite5m: true,
  cacheWrite1h: true,
  reasoning: true,
  audioInput: true,
  audioOutput: true,
  imageInput: true,
  imageOutput: true,
} satisfies Readonly<Record<keyof Rates, true>>);

/** Everything that a price table can have a price for. */
export const pricedKinds: readonly ListPrice["kind"][] = [...rateNames, "request"];

/** Whether a price is valid: whole numbers from 0, and ascending thresholds. The host's own price book may be wrong. */
export function isPrice(price: Price): boolean {
  return (
    isTierPrice(price) &&
    (price.tiers === undefined || Object.values(price.tiers).every(isTierPrice))
  );
}

function isTierPrice(price: TierPrice): boolean {
  const { request = 0, longPrompt } = price;
  return isAmount(request) && areRates(price) && (longPrompt?.every(isNextLength) ?? true);
}

function isNextLength(
  long: LongPromptPrice,
  at: number,
  longPrompt: readonly LongPromptPrice[],
): boolean {
  return areRates(long) && isAmount(long.above) && long.above > (longPrompt[at - 1]?.above ?? -1);
}

function areRates(rates: Rates): boolean {
  return (
    isAmount(rates.input) &&
    isAmount(rates.output) &&
    rateNames.every((name) => rates[name] === undefined || isAmount(rates[name]))
  );
}

function isAmount(amount: unknown): boolean {
  return Number.isSafeInteger(amount) && Number(amount) >= 0;
}

/** The prices of a tier, or null if the table has none for it. */
export function tierPrice(price: Price, tier: string): TierPrice | null {
  if (tier === standardTier) return price;
  const { tiers } = price;
  const own = tiers && Object.hasOwn(tiers, tier) ? tiers[tier] : undefined;
  if (own === undefined) return null;
  return price.request === undefined ? own : { request: price.request, ...own };
}

/**
 * The cost of usage in nanodollars, computed in integers and rounded up once. Details are parts of their counts, so they are
 * not added to them. A cost above the largest exact number (9 million dollars) becomes that number, which fits no budget.
 */
export function costOf(usage: CountedTokens, price: TierPrice, pick = first): number {
  const { request = 0, longPrompt } = price;
  let cost = sum(amountsOf(usage, price, pick), request);
  for (const long of longPrompt ?? [])
    if (usage.promptTokens > long.above)
      cost = pick(sum(amountsOf(usage, long, pick), request), cost);
  return cost;
}

/** The tokens of one kind that an attempt used, or its one request, and their price in the table it was opened with. */
export interface ListPrice {
  readonly kind: keyof Rates | "request";
  readonly quantity: number;
  /** Nanodollars per million tokens, or per request. */
  readonly nanoUsd: number;
}

/**
 * Divides usage into the kinds that a price table has prices for. Each token is in one kind. The products add up to the
 * cost of reported usage, before it is rounded up.
 */
export function listPrices(usage: Usage, price: Price, served: ServedTier): readonly ListPrice[] {
  const { price: own } = servingPrice(usage, price, served);
  const { request = 0 } = own;
  return [
    ...amountsOf(usage, ratesAt(own, usage.promptTokens)).map(
      ([quantity, nanoUsd, kind]): ListPrice => ({ kind, quantity, nanoUsd }),
    ),
    ...(request === 0 ? [] : [{ kind: "request", quantity: 1, nanoUsd: request } as const]),
  ];
}

/** The rates for a prompt with this many tokens. */
function ratesAt(price: TierPrice, promptTokens: number): Rates {
  return price.longPrompt?.findLast(({ above }) => promptTokens > above) ?? price;
}

type Amount = readonly [tokens: number, rate: number, kind: keyof Rates];

/** Picks the rate of tokens whose kind is unknown, or a cost. The first one is that of reported usage. */
type PickOne = (...of: number[]) => number;

const first: PickOne = (one = 0) => one;

type CountedTokens = HeldTokens & UsageDetails;

/** The parts of the prompt and completion tokens, each with its rate. */
function amountsOf(usage: CountedTokens, rates: Rates, pick = first): readonly Amount[] {
  const amounts: Amount[] = [];
  const { input, output, cachedInput = input, cacheWrite5m = input, imageInput = input } = rates;
  const { cacheWrite1h = cacheWrite5m } = rates;
  const { reasoning = output, audioOutput = output, imageOutput = output } = rates;
  let left = usage.promptTokens;
  const take = (kind: keyof Rates, tokens: number | undefined, rate: number): void => {
    if (tokens === undefined || tokens === 0 || left === 0) return;
    const taken = Math.min(tokens, left);
    left -= taken;
    amounts.push([taken, rate, kind]);
  };
  const { cachedTokens, cacheWriteTokens, imageInputTokens } = usage;
  const written = cacheWriteTokens ?? 0;
  const kept = Math.min(usage.cacheWrite1hTokens ?? 0, written);
  take("cacheWrite1h", kept, cacheWrite1h);
  take("cacheWrite5m", written - kept, cacheWrite5m);
  take("cachedInput", cachedTokens, cachedInput);
  take("audioInput", usage.audioInputTokens, rates.audioInput ?? input);
  take("imageInput", imageInputTokens, imageInput);
  // The rest has none of the kinds that were reported.
  const rest = pick(
    input,
    cachedTokens === undefined ? cachedInput : input,
    cacheWriteTokens === undefined ? cacheWrite5m : input,
    cacheWriteTokens === undefined ? cacheWrite1h : input,
    imageInputTokens === undefined ? imageInput : input,
  );
  take("input", left, rest);
  left = usage.completionTokens;
  take("reasoning", usage.reasoningTokens, reasoning);
  take("audioOutput", usage.audioOutputTokens, audioOutput);
  take("imageOutput", usage.imageOutputTokens, imageOutput);
  take("output", left, pick(output, reasoning, audioOutput, imageOutput));
  return amounts;
}

const million = 1_000_000n;

function sum(amounts: readonly Amount[], request: number): number {
  const exact = amounts.reduce((total, [tokens, rate]) => total + tokens * rate, 0);
  // Each product and each sum is at most this, so each was exact.
  if (exact <= Number.MAX_SAFE_INTEGER)
    return Math.min(Math.ceil(exact / 1_000_000) + request, Number.MAX_SAFE_INTEGER);
  const wide = amounts.reduce((total, [tokens, rate]) => total + BigInt(tokens) * BigInt(rate), 0n);
  return Math.min(
    Number((wide + million - 1n) / million + BigInt(request)),
    Number.MAX_SAFE_INTEGER,
  );
}

/** Tokens to hold, before their kinds are known. */
export interface HeldTokens {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/**
 * The highest cost of these tokens, over all tiers, prompt lengths and kinds of tokens that a request can cause (a request
 * has no audio). Null if a tier has no price.
 */
export function maxCost(held: HeldTokens, price: Price, tiers: readonly string[]): number | null {
  return extremeCost(held, price, { tiers, pick: Math.max });
}

/** The lowest and the highest cost of tokens at any price of a table. */
export function costBounds(
  { promptTokens, completionTokens }: HeldTokens,
  price: Price,
): { readonly min: number; readonly max: number } {
  const held = { promptTokens, completionTokens };
  const tiers = [standardTier, ...Object.keys(price.tiers ?? {})];
  return {
    min: extremeCost(held, price, { tiers, pick: Math.min }) ?? 0,
    max: extremeCost(held, price, { tiers, pick: Math.max }) ?? Number.MAX_SAFE_INTEGER,
  };
}

function extremeCost(
  held: HeldTokens,
  price: Price,
  { tiers, pick }: { readonly tiers: readonly string[]; readonly pick: PickOne },
): number | null {
  let extreme: number | null = null;
  for (const tier of tiers) {
    const prices = tierPrice(price, tier);
    if (prices === null) return null;
    const cost = costOf(held, prices, pick);
    extreme = extreme === null ? cost : pick(extreme, cost);
  }
  return extreme;
}

/** The cost of usage at a price table, and whether it is exact or the highest cost of the held tiers. */
export interface PricedUsage {
  readonly costNanoUsd: number;
  readonly basis: UsageBasis;
}

/** The tier that the provider reported, or null, and those that were held. */
interface ServedTier {
  readonly served: string | null;
  readonly tiers: readonly string[];
}

/**
 * The cost of usage at the tier it was served at. If none was reported but only the standard tier was possible, that one
 * counts. If the served tier has no price, or it is unknown which of several served the call, the most expensive one that
 * was held counts. In estimated usage, tokens of unreported kinds count at the highest price.
 */
export function priceUsage(
  usage: Usage,
  price: Price,
  served: ServedTier,
  usageBasis: UsageBasis = "reported",
): PricedUsage {
  const pick = usageBasis === "reported" ? first : Math.max;
  const serving = servingPrice(usage, price, served, pick);
  return {
    costNanoUsd: costOf(usage, serving.price, pick),
    basis: pick === first ? serving.basis : usageBasis,
  };
}

function servingPrice(
  usage: Usage,
  price: Price,
  { served, tiers }: ServedTier,
  pick = first,
): { readonly price: TierPrice; readonly basis: PricedUsage["basis"] } {
  const [only = standardTier, ...others] = tiers;
  const tier = served ?? (others.length === 0 ? only : null);
  const known = tier === null ? null : tierPrice(price, tier);
  if (known !== null) return { price: known, basis: "reported" };
  let highest: TierPrice = price;
  for (const held of tiers) {
    const prices = tierPrice(price, held);
    if (prices !== null && costOf(usage, prices, pick) > costOf(usage, highest, pick))
      highest = prices;
  }
  return { price: highest, basis: "estimated" };
}
