import type { PriceBook } from "../contracts/price-book.ts";
import type { ModelConfiguration, Provider } from "../contracts/provider.ts";
import { type ModelFacts, noFacts } from "../domain/model-facts.ts";
import { formatModelId, type ModelId } from "../domain/model-id.ts";
import { lowerAscii } from "../domain/pattern.ts";
import type { Problem } from "../errors/gateway-error.ts";
import { type Schema, tryRead } from "../input/read.ts";
import { synchronous } from "../kernel/synchronous.ts";
import { listedModels, priceTableSchema } from "./model-schema.ts";
import { readPrice } from "./read-price.ts";

/** Prices by full model id, in US dollars per million tokens. */
export type PriceTable = Readonly<Record<string, ModelConfiguration>>;

/** Whether prices are a book, not a table. */
export function isPriceBook<Book extends Pick<PriceBook, "priceOf">>(
  prices: Book | PriceTable,
): prices is Book {
  return typeof prices.priceOf === "function";
}

/** All prices of a configuration: its table, those of its providers, and the host's own book. */
export function configuredPrices(
  providers: ReadonlyMap<string, Provider>,
  prices: PriceBook | PriceTable = {},
): PriceBook {
  const [tables, books] = isPriceBook(prices) ? [[], [prices]] : [[tableBook(prices)], []];
  return firstPrice([...tables, tableBook(providerTable(providers)), ...books]);
}

/** Asks each book in turn. For the price and for each fact, the first book that knows it wins. */
function firstPrice(books: readonly PriceBook[]): PriceBook {
  return {
    priceOf(model, at) {
      for (const book of books) {
        const price = synchronous(book.priceOf(model, at));
        if (price) return price;
      }
      return null;
    },
    factsOf(model) {
      let known: ModelFacts = noFacts;
      for (const book of books) {
        const { maxOutputTokens, reasons } = synchronous(book.factsOf(model));
        known = {
          maxOutputTokens: known.maxOutputTokens ?? maxOutputTokens,
          reasons: known.reasons ?? reasons,
        };
      }
      return known;
    },
    modelNames: (gateway, at) =>
      books.flatMap((book) => synchronous(book.modelNames?.(gateway, at)) ?? []),
  };
}

/**
 * Turns a price table into a book. A model without both prices has none. Ignores ASCII case, because upstreams that ignore
 * it charge the same for every spelling.
 */
export function tableBook(table: PriceTable): PriceBook {
  const entries = Object.entries(table).map(([id, written]) => [lowerAscii(id), written] as const);
  const facts = new Map(
    entries.map(([id, { maxOutputTokens = null, reasons = null }]) => [
      id,
      { maxOutputTokens, reasons },
    ]),
  );
  const prices = new Map(entries.map(([id, model]) => [id, readPrice(model)]));
  // Routes are cached with their models, so each name is computed once.
  const names = new WeakMap<ModelId, string>();
  const nameOf = (model: ModelId): string => {
    const name = names.get(model) ?? lowerAscii(formatModelId(model));
    names.set(model, name);
    return name;
  };
  return {
    priceOf: (model) => prices.get(nameOf(model)) ?? null,
    factsOf: (model) => facts.get(nameOf(model)) ?? noFacts,
  };
}

/** The configured prices of all providers, by full model id. */
export function providerTable(providers: ReadonlyMap<string, Provider>): PriceTable {
  return Object.fromEntries(
    [...providers].flatMap(([gateway, provider]) =>
      Object.entries(provider?.models ?? {}).map(([model, written]) => [
        `${gateway}/${model}`,
        written,
      ]),
    ),
  );
}

/** The problems of the providers' prices and of the option `prices`. */
export function priceProblems(
  providers: ReadonlyMap<string, Provider>,
  table: PriceTable,
): readonly Problem[] {
  return [
    ...[...providers]
      // Such a provider reports price problems itself.
      .filter(([, provider]) => provider.problems.length === 0)
      .flatMap(([gateway, { models }]) =>
        problemsIn(listedModels, models, `providers.${gateway}.models`),
      ),
    ...problemsIn(priceTableSchema, table, "prices"),
    ...sameInAnyCase(Object.keys({ ...providerTable(providers), ...table })),
  ];
}

function problemsIn(schema: Schema<unknown>, written: unknown, path: string): readonly Problem[] {
  return tryRead(schema, written, { noun: "member", path }).problems;
}

/** One of the two models would get the other's price. */
function sameInAnyCase(ids: readonly string[]): readonly Problem[] {
  const spellings = new Map(ids.map((id) => [lowerAscii(id), id]));
  return ids.flatMap((id) => {
    const other = spellings.get(lowerAscii(id));
    return other === undefined || other === id
      ? []
      : [{ path: "prices", message: `Models ${id} and ${other} differ by case only.` }];
  });
}

/** A book's facts about a model besides its price. If the host's book fails, nothing is known. */
export function modelFacts(book: PriceBook, failed: () => void): (model: ModelId) => ModelFacts {
  return (model) => {
    try {
      const { maxOutputTokens, reasons } = book.factsOf(model);
      const isCap = Number.isSafeInteger(maxOutputTokens) && (maxOutputTokens ?? 0) > 0;
      return {
        maxOutputTokens: isCap ? maxOutputTokens : null,
        reasons: typeof reasons === "boolean" ? reasons : null,
      };
    } catch {
      failed();
      return noFacts;
    }
  };
}
