import { type ModelInfo, type ModelPrice, waitForUpdate } from "@pydantic/genai-prices";
import type { Rates } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { readPrice } from "./read-price.ts";

const providers = (await waitForUpdate()) ?? [];
const entries = providers.flatMap(({ id, models }) =>
  models.flatMap((model) => pricesOf(model).map((prices) => ({ id, name: model.id, prices }))),
);

function pricesOf(model: ModelInfo): readonly ModelPrice[] {
  return Array.isArray(model.prices) ? model.prices.map(({ prices }) => prices) : [model.prices];
}

/** Converts nanodollars to dollars by moving the decimal point in the text, so nothing is rounded. */
function dollars(nano: number): string {
  const digits = String(nano).padStart(10, "0");
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, "");
}

/** The catalog's price for a kind of token in prompts above a threshold. */
function written(value: ModelPrice[string], above: number): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number") return String(value);
  return String(value.tiers.findLast(({ start }) => start <= above)?.price ?? value.base);
}

/** Vectors are not charged as output. */
function outputOf(prices: ModelPrice): ModelPrice {
  return { output_mtok: 0, ...prices };
}

/** The price of Claude's hour-long cache writes: twice the input. */
function hourOf(name: string, { input, cacheWrite5m }: Rates): string | undefined {
  return name.includes("claude") && cacheWrite5m !== undefined ? dollars(2 * input) : undefined;
}

const names = [
  ["input", "input_mtok"],
  ["output", "output_mtok"],
  ["cachedInput", "cache_read_mtok"],
  ["cacheWrite5m", "cache_write_mtok"],
  ["cacheWrite1h", "cache_write_1h_mtok"],
  ["reasoning", "output_reasoning_mtok"],
  ["audioInput", "input_audio_mtok"],
  ["audioOutput", "output_audio_mtok"],
  ["imageInput", "input_image_mtok"],
  ["imageOutput", "output_image_mtok"],
] as const;

describe("every entry of the catalog", () => {
  it("converts to the catalog's exact digits, or has no price", () => {
    let exact = 0;
    for (const { name, prices } of entries) {
      const price = readPrice({ name, prices }, "v");
      if (price === null || Object.keys(prices).length === 0) continue;
      exact += 1;
      for (const rates of [{ above: -1, ...price }, ...(price.longPrompt ?? [])])
        for (const [rate, unit] of names) {
          const nano = rates[rate];
          const digits = written(outputOf(prices)[unit], rates.above);
          // Claude's hour-long writes may be missing from an entry.
          const expected = rate === "cacheWrite1h" ? (digits ?? hourOf(name, rates)) : digits;
          expect(nano === undefined ? undefined : dollars(nano)).toBe(expected);
        }
    }
    expect(exact).toBeGreaterThan(1_400);
  });

  it("needs a price of output, unless its model returns vectors", () => {
    const without = entries.filter(
      ({ prices }) => prices["input_mtok"] !== undefined && prices["output_mtok"] === undefined,
    );
    const priced = without.filter((entry) => readPrice(entry, "v") !== null);
    expect(priced.length).toBeGreaterThan(30);
    for (const { name } of priced) expect(name).toMatch(/embed|voyage-|bge-/i);
    const others = without.filter((entry) => !priced.includes(entry)).map(({ name }) => name);
    const text = ["ada", "babbage", "curie", "davinci", "jev-1.13.0"];
    const ranks = ["@cf/baai/bge-reranker-base", "@cf/huggingface/distilbert-sst-2-int8"];
    expect(others.toSorted()).toEqual([...ranks, ...text]);
  });

  it("has Claude's hour-long cache writes at twice the input, wherever it has them", () => {
    const listed = entries.filter(
      ({ name, prices }) => /claude/i.test(name) && prices["cache_write_1h_mtok"] !== undefined,
    );
    expect(listed.length).toBeGreaterThan(20);
    for (const { name, prices } of listed) {
      const { input = 0, cacheWrite1h } = readPrice({ name, prices }, "v") ?? {};
      expect([name, cacheWrite1h]).toEqual([name, 2 * input]);
    }
  });

  it("is zero only for a free variant", () => {
    for (const { name, prices } of entries) {
      const price = readPrice({ name, prices }, "v");
      if (price !== null && price.input + price.output === 0) expect(name).toMatch(/:free$/);
    }
  });

  it("charges only by units that this test knows", () => {
    const considered = [
      ...[
        "input_mtok",
        "output_mtok",
        "cache_read_mtok",
        "cache_write_mtok",
        "cache_write_1h_mtok",
        "output_reasoning_mtok",
        "input_audio_mtok",
        "output_audio_mtok",
        "input_image_mtok",
        "output_image_mtok",
        "requests_kcount",
      ],
      // An entry with one of these units has no price.
      ...["input_text_messages_kcount", "output_citation_mtok"],
      // Video, documents, sound by the hour and hosted searches are not part of a completion here.
      ...["cache_audio_read_mtok", "audio_hours"],
      ...["input_audio_hours", "input_video_mtok", "output_video_mtok"],
      ...["cache_image_read_mtok", "input_document_kpages", "input_annotated_document_kpages"],
      ...["web_searches_kcount", "storage_searches_kcount"],
    ];
    const charged = new Set(entries.flatMap(({ prices }) => Object.keys(prices)));
    expect([...charged].filter((name) => !considered.includes(name))).toEqual([]);
  });
});

describe("an entry with more than one threshold", () => {
  it("has the prices above each of them", () => {
    const prices = {
      input_mtok: {
        base: 1,
        tiers: [
          { start: 1_000, price: 2 },
          { start: 3_000, price: 4 },
        ],
      },
      output_mtok: { base: 5, tiers: [{ start: 2_000, price: 6 }] },
      requests_kcount: 5,
    };
    const dollar = 1_000_000_000;
    expect(readPrice({ name: "m", prices }, "v")).toEqual({
      input: dollar,
      output: 5 * dollar,
      request: 5_000_000,
      longPrompt: [
        { above: 1_000, input: 2 * dollar, output: 5 * dollar },
        { above: 2_000, input: 2 * dollar, output: 6 * dollar },
        { above: 3_000, input: 4 * dollar, output: 6 * dollar },
      ],
      source: "catalog",
      version: "v",
    });
  });
});
