import { type ModelInfo, type ModelPrice, waitForUpdate } from "@pydantic/genai-prices";
import { describe, expect, it } from "vitest";
import { readPrice } from "./read-price.ts";

const providers = (await waitForUpdate()) ?? [];
const entries = providers.flatMap(({ id, models }) =>
  models.flatMap((model) => pricesOf(model).map((prices) => ({ id, name: model.id, prices }))),
);

function pricesOf(model: ModelInfo): readonly ModelPrice[] {
  return Array.isArray(model.prices) ? model.prices.map(({ prices }) => prices) : [model.prices];
}

/** Dollars from nanodollars by moving the decimal point in the text: no arithmetic that could round. */
function dollars(nano: number): string {
  const digits = String(nano).padStart(10, "0");
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, "");
}

function written(value: ModelPrice[string], side: "base" | "long"): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number") return String(value);
  return String(side === "base" ? value.base : value.tiers[0]?.price);
}

describe("every entry of the catalog", () => {
  it("converts to the very digits the catalog gives, or is refused", () => {
    let exact = 0;
    for (const { name, prices } of entries) {
      const price = readPrice({ name, prices }, "v");
      if (price === null || Object.keys(prices).length === 0) continue;
      exact += 1;
      for (const [rates, side] of [
        [price, "base"],
        [price.longPrompt, "long"],
      ] as const) {
        if (rates === undefined) continue;
        expect(dollars(rates.input)).toBe(written(prices["input_mtok"], side));
        expect(dollars(rates.output)).toBe(written(prices["output_mtok"], side));
        if (rates.cachedInput === undefined) expect(prices["cache_read_mtok"]).toBeUndefined();
        else expect(dollars(rates.cachedInput)).toBe(written(prices["cache_read_mtok"], side));
      }
    }
    expect(exact).toBeGreaterThan(1_400);
  });

  it("is zero only for a free variant", () => {
    for (const { name, prices } of entries) {
      const price = readPrice({ name, prices }, "v");
      if (price !== null && price.input + price.output === 0) expect(name).toMatch(/:free$/);
    }
  });

  it("charges by nothing that was not considered here", () => {
    const considered = [
      ...[
        "input_mtok",
        "output_mtok",
        "cache_read_mtok",
        "cache_write_mtok",
        "cache_write_1h_mtok",
      ],
      // With one of these an entry is refused.
      ...["requests_kcount", "input_text_messages_kcount", "input_image_mtok"],
      ...["output_reasoning_mtok", "output_citation_mtok"],
      // Sound, video, documents, drawn images and hosted searches are not part of a completion here.
      ...["input_audio_mtok", "output_audio_mtok", "cache_audio_read_mtok", "audio_hours"],
      ...["input_audio_hours", "input_video_mtok", "output_video_mtok", "output_image_mtok"],
      ...["cache_image_read_mtok", "input_document_kpages", "input_annotated_document_kpages"],
      ...["web_searches_kcount", "storage_searches_kcount"],
    ];
    const charged = new Set(entries.flatMap(({ prices }) => Object.keys(prices)));
    expect([...charged].filter((name) => !considered.includes(name))).toEqual([]);
  });
});

describe("an entry with more than one threshold", () => {
  it("is refused", () => {
    const tiered = (start: number) => ({ base: 1, tiers: [{ start, price: 2 }] });
    const prices = { input_mtok: tiered(1_000), output_mtok: tiered(2_000) };
    expect(readPrice({ name: "m", prices }, "v")).toBeNull();
    const twice = { base: 1, tiers: [...tiered(1_000).tiers, { start: 2_000, price: 3 }] };
    expect(readPrice({ name: "m", prices: { input_mtok: twice, output_mtok: 1 } }, "v")).toBeNull();
  });
});
