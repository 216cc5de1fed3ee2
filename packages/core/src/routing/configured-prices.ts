import type { PriceBook } from "../contracts/price-book.ts";
import type { ModelConfiguration, Provider } from "../contracts/provider.ts";
import { type ModelFacts, noFacts } from "../domain/model-facts.ts";
import { formatModelId, type ModelId, parseModelId } from "../domain/model-id.ts";
import { lowerAscii } from "../domain/pattern.ts";
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
    modelNames: (gateway, at) => books.flatMap((book) => book.modelNames?.(gateway, at) ?? []),
  };
}

/**
 * A table of prices as a book; a model without both prices has none. ASCII case is ignored: an upstream that ignores it
 * bills every spelling of an id alike.
 */
export function tableBook(table: PriceTable): PriceBook {
  const entries = Object.entries(table).map(([id, written]) => [lowerAscii(id), written] as const);
  const written = new Map(entries);
  const prices = new Map(entries.map(([id, model]) => [id, readPrice(model)]));
  return {
    priceOf: (model) => prices.get(lowerAscii(formatModelId(model))) ?? null,
    factsOf(model) {
      const id = lowerAscii(formatModelId(model));
      const { maxOutputTokens = null, reasons = null } = written.get(id) ?? {};
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
  const spellings = new Map(Object.keys(table).map((id) => [lowerAscii(id), id]));
  return Object.entries(table).flatMap(([id, written]) => {
    const other = spellings.get(lowerAscii(id));
    if (other !== undefined && other !== id)
      return [`Models ${id} and ${other} differ by case only.`];
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
