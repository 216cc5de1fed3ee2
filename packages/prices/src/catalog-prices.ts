import * as catalog from "@pydantic/genai-prices";
import type { ModelFacts, ModelId, Price, PriceBook } from "@tollgate/core/provider";
import { catalogVersion, requirePrices } from "./catalog-version.ts";
import { chooseList, findEntry, listNamed } from "./find-entry.ts";
import { knownModels } from "./known-models.ts";
import { namesIn } from "./names-in.ts";
import { readPrice } from "./read-price.ts";

/** How `catalogPrices` reads gateway names. */
export interface CatalogPricesOptions {
  /**
   * Whose price list a gateway is charged by: a provider id of the catalog (`openai`, `azure`, `openrouter`, `groq`, …),
   * or `"vendor"` for each vendor's own list, or null for a gateway whose prices are not to be looked up, such as one
   * in your own house. A gateway that is not named here is recognised by its name; by default an unrecognised one is
   * charged by its vendors' own lists.
   */
  readonly gateways?: Readonly<Record<string, string | null>>;
}

/** Models remembered at a time; a caller can name any number of them. */
const maxCached = 1_000;
const minute = 60_000;

/**
 * Prices of known models from the catalog package `@pydantic/genai-prices`, as exact integers. Nothing is fetched: the
 * prices are those of the installed release, which `Price.version` names.
 *
 * A model is looked up in the list of its gateway if the catalog knows that gateway, else in the list of its vendor;
 * dated and aliased names are matched as the catalog matches them. A `:free` model is free only where the catalog
 * lists it so. The price is the one that holds at the time asked for, to the minute (UTC), with the higher prices of
 * long prompts in `longPrompt`.
 *
 * Unknown is null and never zero: a model the catalog does not list, one without a price of input and output tokens,
 * one that also charges for what usage does not count (citations), and a price finer than a nanodollar per million
 * tokens. Prices of OpenAI's service tiers, output limits and which models reason come from a dated table of this
 * package; a tier that it does not list has no known price.
 *
 * The catalog is part of the module graph, so bundlers take it along; importing this package loads it, which takes some
 * 20 ms.
 * @throws Error when the catalog has come without its prices. Nothing goes unpriced because a file was left behind.
 * @throws RangeError when `gateways` names a list that the catalog does not have.
 */
export function catalogPrices(options: CatalogPricesOptions = {}): PriceBook {
  const gateways = new Map(Object.entries(options.gateways ?? {}));
  const known = new Map<string, { readonly since: number; readonly price: Price | null }>();
  const facts = new Map<string, ModelFacts>();
  const names = new Map<string, readonly string[]>();
  requirePrices(catalog);

  function lookUp(model: ModelId, at: number): Price | null {
    const entry = findEntry(catalog, model, { at, list: gateways.get(model.gateway) });
    return entry === null ? null : readPrice(entry, catalogVersion);
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

  for (const [gateway, list] of gateways)
    if (list !== null && list !== "vendor" && listNamed(catalog, list) !== list)
      throw new RangeError(`the price catalog has no list "${list}" (gateway "${gateway}")`);

  return {
    priceOf(model, at) {
      const since = Math.floor(at / minute) * minute;
      const id = JSON.stringify([model.gateway, model.vendor, model.model]);
      const found = known.get(id);
      if (found?.since === since) return found.price;
      const price = lookUp(model, since);
      if (known.size >= maxCached) known.clear();
      known.set(id, { since, price });
      return price;
    },
    factsOf(model) {
      const id = JSON.stringify([model.vendor, model.model]);
      const found = facts.get(id) ?? lookUpFacts(model);
      if (facts.size >= maxCached) facts.clear();
      facts.set(id, found);
      return found;
    },
    modelNames({ gateway, vendor }, at) {
      const list = chooseList(catalog, { gateway, vendor: vendor ?? "" }, gateways.get(gateway));
      if (list === null) return [];
      const found = names.get(list) ?? namesIn(catalog, list, at);
      names.set(list, found);
      return found;
    },
  };
}
