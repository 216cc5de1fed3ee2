import type { ModelPrice } from "@pydantic/genai-prices";
import { type LongPromptPrice, type Price, parseUsd } from "@tollgate/core/provider";
import type { CatalogEntry } from "./find-entry.ts";

type CatalogValue = ModelPrice[string];

/** Charges that a completion's usage does not count: with one of these, tokens alone would come out too cheap. */
const uncounted = [
  "requests_kcount",
  "input_text_messages_kcount",
  "input_image_mtok",
  "output_reasoning_mtok",
  "output_citation_mtok",
];

/** The price in nanodollars per million tokens; null when the entry does not give one exactly. */
export function readPrice(entry: CatalogEntry, version: string): Price | null {
  const { prices } = entry;
  const names = Object.keys(prices).filter((name) => prices[name] !== undefined);
  // The catalog writes "free" as an entry without prices; a few more such entries are merely unpriced.
  if (names.length === 0 && entry.name.endsWith(":free"))
    return { input: 0, output: 0, source: "catalog", version };
  if (uncounted.some((name) => names.includes(name))) return null;
  const rates = ratesOf(prices, baseOf);
  if (rates === null) return null;
  const longPrompt = longPromptOf(prices);
  if (longPrompt === null) return null;
  return { ...rates, ...longPrompt, source: "catalog", version };
}

/** The prices above the one threshold that they share; nothing without one, null when they do not share it. */
function longPromptOf(prices: ModelPrice): { readonly longPrompt?: LongPromptPrice } | null {
  const charged = [prices["input_mtok"], prices["output_mtok"], prices["cache_read_mtok"]];
  const thresholds = new Set(
    charged.flatMap((value) =>
      typeof value === "object" ? value.tiers.map((tier) => tier.start) : [],
    ),
  );
  const [above, ...others] = thresholds;
  if (above === undefined) return {};
  if (others.length > 0) return null;
  const rates = ratesOf(prices, (value) =>
    typeof value === "object" ? (value.tiers[0]?.price ?? value.base) : value,
  );
  return rates === null ? null : { longPrompt: { above, ...rates } };
}

function baseOf(value: CatalogValue): number | undefined {
  return typeof value === "object" ? value.base : value;
}

function ratesOf(
  prices: ModelPrice,
  select: (value: CatalogValue) => number | undefined,
): { readonly input: number; readonly output: number; readonly cachedInput?: number } | null {
  const input = exact(select(prices["input_mtok"]));
  const output = exact(select(prices["output_mtok"]));
  if (input === null || output === null) return null;
  const cachedUsd = select(prices["cache_read_mtok"]);
  if (cachedUsd === undefined) return { input, output };
  const cachedInput = exact(cachedUsd);
  return cachedInput === null ? null : { input, output, cachedInput };
}

/** US dollars as the catalog's decimal text gives them; null when absent or finer than a nanodollar. */
function exact(usd: number | undefined): number | null {
  return usd === undefined ? null : parseUsd(usd);
}
