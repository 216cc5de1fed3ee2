import type { ModelPrice } from "@pydantic/genai-prices";
import { type Price, parseUsd, type Rates, type TierPrice } from "@tollgate/core/provider";
import type { CatalogEntry } from "./find-entry.ts";
import { openaiTiers } from "./known-models.ts";

type CatalogValue = ModelPrice[string];

/** The catalog's name of each rate. */
const catalogNames: Readonly<Record<keyof Rates, string>> = {
  input: "input_mtok",
  output: "output_mtok",
  cachedInput: "cache_read_mtok",
  cacheWrite5m: "cache_write_mtok",
  cacheWrite1h: "cache_write_1h_mtok",
  reasoning: "output_reasoning_mtok",
  audioInput: "input_audio_mtok",
  audioOutput: "output_audio_mtok",
  imageInput: "input_image_mtok",
  imageOutput: "output_image_mtok",
};

const rateNames = Object.keys(catalogNames).filter((name): name is keyof Rates =>
  Object.hasOwn(catalogNames, name),
);

/** Charges for something that usage doesn't count. With one of them, a price of tokens alone would be too low. */
const uncounted = ["input_text_messages_kcount", "output_citation_mtok"];

/** Models that search the web for every request. Their providers charge for the searches, too. */
const searching = /-search-preview|deep-research|sonar(?:-|$)|-online$/i;

/** Models that draw images, whose tokens cost several times as much as text. Those named `gpt-image` write nothing else. */
const drawing = /(?<!\bgpt)-image(?:-|$)/i;

/** Entries of models that return vectors. They write nothing, so the catalog has no price of output for them. */
const ofVectors = /embed|(?:^|\/)(?:voyage-|bge-(?!reranker))/i;

/** The price in nanodollars per million tokens; null if it can't be given exactly. */
export function readPrice(entry: CatalogEntry, version: string): Price | null {
  const prices = withHourLongWrites({ ...entry, prices: withOutput(entry) });
  const names = Object.keys(prices).filter((name) => prices[name] !== undefined);
  // The catalog lists a free model as an entry without prices. Other entries without prices are just incomplete.
  if (names.length === 0 && entry.name.endsWith(":free"))
    return { input: 0, output: 0, source: "catalog", version };
  if (uncounted.some((name) => names.includes(name)) || lacksCharge(entry)) return null;
  const standard = ratesAbove(prices, -1);
  const request = requestOf(prices);
  const longPrompt = thresholdsOf(prices).map((above) => {
    const rates = ratesAbove(prices, above);
    return rates && { above, ...rates };
  });
  const known = longPrompt.filter((step) => step !== null);
  if (standard === null || request === null || known.length < longPrompt.length) return null;
  return {
    ...standard,
    ...request,
    ...(known.length === 0 ? {} : { longPrompt: known }),
    ...tiersOf(entry),
    source: "catalog",
    version,
  };
}

/** Whether a model charges for searches or for images, and its entry only has prices of text. */
function lacksCharge({ name, wanted = name, prices }: CatalogEntry): boolean {
  const isNamed = (kind: RegExp): boolean => kind.test(name) || kind.test(wanted);
  return (
    (prices["requests_kcount"] === undefined && isNamed(searching)) ||
    (prices["output_image_mtok"] === undefined && isNamed(drawing))
  );
}

function withOutput({ name, prices }: CatalogEntry): ModelPrice {
  const isFree = prices["output_mtok"] === undefined && ofVectors.test(name);
  return isFree && prices["input_mtok"] !== undefined ? { ...prices, output_mtok: 0 } : prices;
}

/**
 * Adds the price of hour-long cache writes to a Claude model's entry without one: twice the input, as in every entry that
 * has one. Otherwise they would cost as little as writes for five minutes.
 */
function withHourLongWrites({ name, prices }: CatalogEntry): ModelPrice {
  const { input_mtok: input, cache_write_mtok: short, cache_write_1h_mtok: long } = prices;
  if (!/claude/i.test(name) || input === undefined || !short || long !== undefined) return prices;
  const doubled =
    typeof input === "number"
      ? 2 * input
      : {
          base: 2 * input.base,
          tiers: input.tiers.map(({ start, price }) => ({ start, price: 2 * price })),
        };
  return { ...prices, cache_write_1h_mtok: doubled };
}

/** The prices of OpenAI's service tiers. Resellers have their own. Absent if none is known. */
function tiersOf({ list, name }: CatalogEntry): Pick<Price, "tiers"> {
  const known =
    list === "openai" && Object.hasOwn(openaiTiers, name) ? openaiTiers[name] : undefined;
  if (known === undefined) return {};
  const tiers = Object.entries(known).map(([tier, usd]): [string, TierPrice] => {
    const [input = 0, cachedInput = 0, output = 0] = usd.map((amount) => parseUsd(amount) ?? 0);
    return [tier, { input, cachedInput, output }];
  });
  return { tiers: Object.fromEntries(tiers) };
}

/** The prompt lengths above which a price changes, ascending. */
function thresholdsOf(prices: ModelPrice): readonly number[] {
  const starts = Object.values(catalogNames).flatMap((name) => {
    const value = prices[name];
    return typeof value === "object" ? value.tiers.map(({ start }) => start) : [];
  });
  return [...new Set(starts)].sort((a, b) => a - b);
}

/** The price per request, which the catalog gives per thousand; null if it is finer than a nanodollar. */
function requestOf(prices: ModelPrice): { readonly request?: number } | null {
  const thousand = prices["requests_kcount"];
  if (thousand === undefined) return {};
  const nano = typeof thousand === "number" ? parseUsd(thousand) : null;
  return nano === null || nano % 1_000 !== 0 ? null : { request: nano / 1_000 };
}

/** The rates for prompts longer than a threshold; null without input or output rate, or if one isn't exact. */
function ratesAbove(prices: ModelPrice, above: number): Rates | null {
  const rates: { -readonly [Name in keyof Rates]?: number } = {};
  for (const rate of rateNames) {
    const usd = priceAbove(prices[catalogNames[rate]], above);
    if (usd === undefined) continue;
    const nano = parseUsd(usd);
    if (nano === null) return null;
    rates[rate] = nano;
  }
  const { input, output, ...others } = rates;
  return input === undefined || output === undefined ? null : { input, output, ...others };
}

function priceAbove(value: CatalogValue, above: number): number | undefined {
  if (typeof value !== "object") return value;
  return value.tiers.findLast(({ start }) => start <= above)?.price ?? value.base;
}
