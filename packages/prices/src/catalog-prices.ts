import * as catalog from "@pydantic/genai-prices";
import type { ModelFacts, ModelId, Price, PriceBook } from "@tollgate/core/provider";
import { chooseList, findEntry, listNamed } from "./find-entry.ts";
import { knownModels } from "./known-models.ts";
import { readPrice } from "./read-price.ts";

/** How `catalogPrices` maps gateways to price lists. */
export interface CatalogPricesOptions {
  /**
   * The price list of each gateway: a provider id of the catalog (`openai`, `azure`, `openrouter`, `groq`, …), `"vendor"` for
   * each vendor's own list, or null for no prices, such as for a gateway to your own hardware. By default, Tollgate looks for
   * a list with the gateway's name, and otherwise uses the vendors' own lists.
   */
  readonly gateways?: Readonly<Record<string, string | null>>;
}

/** The release that this package depends on. The catalog doesn't state it, and bundles have no manifests. */
const catalogVersion = "genai-prices@0.1.8";

/** Bounds the memory, because callers can name any number of models. */
const maxCached = 1_000;
const minute = 60_000;

/**
 * Prices of known models from the catalog package `@pydantic/genai-prices`, as exact integers. Nothing is fetched: the prices
 * are those of the installed release, which `Price.version` names.
 *
 * Tollgate looks up a model in its gateway's list if the catalog has one, otherwise in its vendor's list. The catalog matches
 * dated names and aliases. A `:free` model is free only if the catalog lists it as free. The price is the one at the
 * requested time, to the minute (UTC), with higher prices for long prompts in `longPrompt`.
 *
 * An unknown price is null, never zero. A price is unknown if the catalog doesn't list the model or has no price for its
 * input and output tokens, or if the model also charges for something that usage doesn't count (citations). It is also
 * unknown for a model that always searches the web, or that draws images, if the catalog only has prices for its text. So is
 * a price finer than a nanodollar per million tokens. A dated table of this package has the prices of OpenAI's service tiers,
 * the output limits, and which models reason. A tier that isn't in it has no known price. Where a list has no price for
 * Claude's one-hour cache writes, they cost twice the input, as in every list that has one.
 *
 * The catalog is part of the module graph, so bundlers include it. Importing this package loads it in about 20 ms.
 * @throws Error if the catalog has no prices, such as in a bundle that left its data behind
 * @throws RangeError if `gateways` names a list that the catalog doesn't have
 */
export function catalogPrices(options: CatalogPricesOptions = {}): PriceBook {
  const gateways = new Map(Object.entries(options.gateways ?? {}));
  const prices = new Map<string, { readonly since: number; readonly price: Price | null }>();
  const facts = new Map<string, ModelFacts>();
  const names = new Map<string, readonly string[]>();
  requirePrices();

  function lookUp(model: ModelId, at: number): Price | null {
    const entry = findEntry(catalog, model, { at, list: gateways.get(model.gateway) });
    return entry === null ? null : readPrice(entry, catalogVersion);
  }

  for (const [gateway, list] of gateways)
    if (list !== null && list !== "vendor" && listNamed(catalog, list) !== list)
      throw new RangeError(
        `\`gateways.${gateway}\` must be a list of the price catalog, "vendor" or null: "${list}" is unknown.`,
      );

  return {
    priceOf(model, at) {
      const since = Math.floor(at / minute) * minute;
      const id = JSON.stringify([model.gateway, model.vendor, model.model]);
      const cached = prices.get(id);
      if (cached?.since === since) return cached.price;
      const price = lookUp(model, since);
      if (prices.size >= maxCached) prices.clear();
      prices.set(id, { since, price });
      return price;
    },
    factsOf(model) {
      const id = JSON.stringify([model.vendor, model.model]);
      const cached = facts.get(id) ?? lookUpFacts(model);
      if (facts.size >= maxCached) facts.clear();
      facts.set(id, cached);
      return cached;
    },
    modelNames({ gateway, vendor }, at) {
      const list = chooseList(catalog, { gateway, vendor: vendor ?? "" }, gateways.get(gateway));
      if (list === null) return [];
      const cached = names.get(list) ?? namesIn(list, at);
      names.set(list, cached);
      return cached;
    },
  };
}

/** A model is the same wherever it is sold, so its vendor's own list names it. */
function lookUpFacts(model: ModelId): ModelFacts {
  const entry = findEntry(catalog, model, { at: Date.UTC(2026, 10, 22), list: "vendor" });
  const known = entry?.list === undefined ? undefined : knownModels[entry.list];
  const found = known?.[model.model] ?? (entry === null ? undefined : known?.[entry.name]);
  if (found === undefined) return { maxOutputTokens: null, reasons: null };
  const [maxOutputTokens, reasons] = found;
  return { maxOutputTokens, reasons };
}

/**
 * The names of a list's models that have a price and are still in service. Each entry is looked up by its own name, because
 * upstreams don't accept every id of the catalog.
 */
function namesIn(list: string, at: number): readonly string[] {
  const provider = catalog.findProvider({ providerId: list });
  if (provider === undefined) return [];
  return provider.models.flatMap((model) => {
    if (model.deprecated === true) return [];
    const alone = { ...provider, models: [model], fallback_model_providers: [] };
    const found = catalog.calcPrice({}, model.id, { provider: alone, timestamp: new Date(at) });
    if (!found) return [];
    const entry = { name: model.id, prices: found.model_price };
    return readPrice(entry, "") === null ? [] : [model.id];
  });
}

/** A list that every release has. */
const knownList = "openai";

function requirePrices(): void {
  const models = catalog.findProvider({ providerId: knownList })?.models ?? [];
  if (models.length > 0) return;
  throw new Error(
    `catalogPrices(): @pydantic/genai-prices has no prices of "${knownList}", so calls would have no price. Make your bundler include the whole package, or mark it as external and ship it.`,
  );
}
