import type { PriceBook } from "../contracts/price-book.ts";
import type { ModelConfiguration, Provider } from "../contracts/provider.ts";
import { type ModelFacts, noFacts } from "../domain/model-facts.ts";
import { formatModelId, type ModelId, parseModelId } from "../domain/model-id.ts";
import { modelFaults, readPrice } from "./read-price.ts";

/** Prices under full model ids, in US dollars per million tokens. */
export type PriceTable = Readonly<Record<string, ModelConfiguration>>;

/** Whether prices are given as a book rather than a table. */
export function isPriceBook<Book extends Pick<PriceBook, "priceOf">>(
  prices: Book | PriceTable,
): prices is Book {
  return typeof prices.priceOf === "function";
}

/** Asks each book in turn: the first that knows the price, or a fact, wins. */
export function firstPrice(books: readonly PriceBook[]): PriceBook {
  return {
    priceOf(model, at) {
      for (const book of books) {
        const price = book.priceOf(model, at);
        if (price) return price;
      }
      return null;
    },
    factsOf(model) {
      const known = books.map((book) => book.factsOf(model));
      return {
        maxOutputTokens:
          known.find((facts) => facts.maxOutputTokens !== null)?.maxOutputTokens ?? null,
        reasons: known.find((facts) => facts.reasons !== null)?.reasons ?? null,
      };
    },
  };
}

/** A table of prices as a book; a model without both prices has none. */
export function tableBook(table: PriceTable): PriceBook {
  const prices = new Map(Object.entries(table).map(([id, written]) => [id, readPrice(written)]));
  return {
    priceOf: (model) => prices.get(formatModelId(model)) ?? null,
    factsOf(model) {
      const id = formatModelId(model);
      const { maxOutputTokens = null, reasons = null } = Object.hasOwn(table, id)
        ? (table[id] ?? {})
        : {};
      return { maxOutputTokens, reasons };
    },
  };
}

/** The prices that providers are configured with, under full ids. */
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

/** What is wrong with a table, one sentence each. */
export function priceProblems(table: PriceTable): readonly string[] {
  return Object.entries(table).flatMap(([id, written]) => {
    if (parseModelId(id) === null) return [`Model ${id} is not <gateway>/<vendor>/<model>.`];
    return modelFaults(written).map((fault) => `Model ${id}: ${fault}.`);
  });
}

/** What a book says of a model besides its price. A book of the host's own may fail: then nothing is known. */
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
