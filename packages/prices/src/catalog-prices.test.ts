import type { Price } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { type CatalogPricesOptions, catalogPrices } from "./catalog-prices.ts";

const noon = Date.UTC(2026, 8, 1, 12);

function priceOf(id: string, at = noon, options: CatalogPricesOptions = {}): Price | null {
  const [gateway = "", vendor = "", ...model] = id.split("/");
  return catalogPrices(options).priceOf({ gateway, vendor, model: model.join("/") }, at);
}

/** Written by hand: nanodollars per million tokens of input, output and cached input. */
const golden = [
  ["openai/openai/gpt-5-mini", 250_000_000, 2_000_000_000, 25_000_000],
  ["openai/openai/gpt-5-mini-2025-08-07", 250_000_000, 2_000_000_000, 25_000_000],
  ["openrouter/openai/gpt-5-mini", 250_000_000, 2_000_000_000, 25_000_000],
  ["azure/openai/gpt-4o-2024-08-06", 2_500_000_000, 10_000_000_000, 1_250_000_000],
  ["groq/openai/gpt-oss-120b", 150_000_000, 600_000_000, 75_000_000],
  ["house/anthropic/claude-opus-4-6", 5_000_000_000, 25_000_000_000, 500_000_000],
] as const;

describe("prices of known models", () => {
  it.each(golden)("%s", (id, input, output, cachedInput) => {
    expect(priceOf(id)).toMatchObject({
      input,
      output,
      cachedInput,
      source: "catalog",
      version: "genai-prices@0.1.8",
    });
  });

  it("gives the prices of long prompts in addition to the standard ones", () => {
    expect(priceOf("google/google/gemini-2.5-pro")).toMatchObject({
      input: 1_250_000_000,
      output: 10_000_000_000,
      cachedInput: 125_000_000,
      longPrompt: [
        {
          above: 200_000,
          input: 2_500_000_000,
          output: 15_000_000_000,
          cachedInput: 250_000_000,
        },
      ],
      source: "catalog",
      version: "genai-prices@0.1.8",
    });
  });

  it("has no price of cached input if the catalog has none", () => {
    expect(priceOf("openai/openai/gpt-4-turbo")).not.toHaveProperty("cachedInput");
  });

  it("prices a free variant at zero only if the catalog lists it", () => {
    expect(priceOf("openrouter/deepseek/deepseek-r1:free")).toMatchObject({ input: 0, output: 0 });
    expect(priceOf("openrouter/openai/gpt-5-mini:free")).toBeNull();
    expect(priceOf("house/deepseek/deepseek-chat:free")).toBeNull();
  });
});

describe("prices beyond input and output", () => {
  it.each([
    ["a request", "perplexity/perplexity/sonar", { request: 12_000_000 }],
    ["images", "openai/openai/gpt-image-1", { imageInput: 10_000_000_000 }],
    ["drawn images", "google/google/gemini-2.5-flash-image", { imageOutput: 30_000_000_000 }],
    [
      "writing to a cache for five minutes and for an hour",
      "anthropic/anthropic/claude-opus-4-6",
      { cacheWrite5m: 6_250_000_000, cacheWrite1h: 10_000_000_000 },
    ],
    ["sound", "google/google/gemini-2.5-flash", { audioInput: 1_000_000_000 }],
    [
      "writing to a cache for an hour, which resellers' lists leave out",
      "openrouter/anthropic/claude-sonnet-4.5",
      {
        cacheWrite5m: 3_750_000_000,
        cacheWrite1h: 6_000_000_000,
        longPrompt: [expect.objectContaining({ above: 200_000, cacheWrite1h: 12_000_000_000 })],
      },
    ],
    [
      "writing to a cache for an hour at a dearer reseller",
      "aws/anthropic/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
      { input: 3_300_000_000, cacheWrite5m: 4_125_000_000, cacheWrite1h: 6_600_000_000 },
    ],
  ])("include those of %s", (_, id, prices) => {
    expect(priceOf(id)).toMatchObject(prices);
  });
});

describe("prices of service tiers", () => {
  it("exist for OpenAI's own list, not for resellers'", () => {
    expect(priceOf("openai/openai/gpt-5.4")?.tiers).toEqual({
      priority: { input: 5_000_000_000, cachedInput: 500_000_000, output: 30_000_000_000 },
    });
    expect(priceOf("openai/openai/gpt-5-mini-2025-08-07")?.tiers).toMatchObject({
      flex: { input: 125_000_000, cachedInput: 12_500_000, output: 1_000_000_000 },
    });
    expect(priceOf("openrouter/openai/gpt-5.4")).not.toHaveProperty("tiers");
    expect(priceOf("openai/openai/gpt-5.4-nano")).not.toHaveProperty("tiers");
  });
});

describe("the facts about a model", () => {
  const factsOf = (id: string) => {
    const [gateway = "", vendor = "", model = ""] = id.split("/");
    return catalogPrices().factsOf({ gateway, vendor, model });
  };

  it.each([
    ["openai/openai/gpt-5.4", 128_000, true],
    ["openrouter/openai/gpt-5-mini-2025-08-07", 128_000, true],
    ["openai/openai/gpt-5-chat-latest", 16_384, false],
    ["house/anthropic/claude-sonnet-4-5-20250929", 64_000, true],
    ["google/google/gemini-2.5-pro", 65_536, true],
    ["openai/openai/gpt-4.1", 32_768, false],
    ["openai/openai/gpt-6-sol-2026-09-22", 128_000, true],
    ["groq/openai/gpt-oss-120b", null, true],
    ["anthropic/anthropic/claude-sonnet-4-6", 128_000, true],
    ["google/google/gemini-3.8-flash", 65_536, true],
    ["xai/x-ai/grok-4.6", null, true],
    ["zai/zai/glm-5.3", 131_072, true],
  ])("%s", (id, maxOutputTokens, reasons) => {
    expect(factsOf(id)).toEqual({ maxOutputTokens, reasons });
  });

  it("are null for an unlisted model", () => {
    for (const id of ["openai/openai/gpt-99", "house/acme/rocket", "openai/openai/toString"])
      expect(factsOf(id)).toEqual({ maxOutputTokens: null, reasons: null });
  });
});

describe("prices that change", () => {
  it("uses the price of the day", () => {
    const change = Date.UTC(2025, 5, 10);
    expect(priceOf("openai/openai/o3", change - 1)).toMatchObject({ input: 10_000_000_000 });
    expect(priceOf("openai/openai/o3", change)).toMatchObject({ input: 2_000_000_000 });
  });

  it("uses the price of the hour, to the minute", () => {
    const book = catalogPrices();
    const model = { gateway: "deepseek", vendor: "deepseek", model: "deepseek-chat" };
    const dear = Date.UTC(2025, 6, 1, 0, 30);
    const inputs = [dear - 60_000, dear - 1, dear, dear + 59_999, dear - 1].map(
      (at) => book.priceOf(model, at)?.input,
    );
    expect(inputs).toEqual([135_000_000, 135_000_000, 270_000_000, 270_000_000, 135_000_000]);
  });
});

describe("the price of embeddings", () => {
  it.each([
    ["openai/openai/text-embedding-3-small", 20_000_000],
    ["voyageai/voyageai/voyage-3.5", 60_000_000],
    ["google/google/gemini-embedding-001", 150_000_000],
  ])("of %s is that of its input alone", (id, input) => {
    expect(priceOf(id)).toMatchObject({ input, output: 0 });
  });
});

describe("an unknown price is null, never zero", () => {
  it.each([
    ["an unlisted model", "openai/openai/gpt-99"],
    ["an unlisted vendor", "house/acme/rocket"],
    ["a variant with a price of its own", "openrouter/openai/gpt-5-mini:online"],
    ["a model of one vendor under another's name", "openrouter/acme/gpt-4o"],
    ["a charge per citation", "perplexity/perplexity/sonar-deep-research"],
    ["a charge per search", "openai/openai/gpt-4o-search-preview-2025-03-11"],
    [
      "a charge per search that another model's entry lacks",
      "openai/openai/gpt-4o-mini-search-preview",
    ],
    ["a charge per search at a reseller", "openrouter/perplexity/sonar-pro"],
    ["searches for research", "openrouter/openai/o4-mini-deep-research"],
    ["images without a price", "openrouter/google/gemini-3.1-flash-image-preview"],
    [
      "images that another model's entry lacks",
      "google/google/gemini-2.0-flash-exp-image-generation",
    ],
    ["an entry without prices", "google/google/gemma-4-31b-it"],
    ["no price of output", "azure/azure/davinci"],
    ["a price finer than a nanodollar", "huggingface_together/Qwen/Qwen3-VL-8B-Instruct"],
    ["empty names", "//"],
  ])("%s", (_, id) => {
    expect(priceOf(id)).toBeNull();
  });
});

describe("the price list of a gateway", () => {
  it("is the configured one", () => {
    expect(priceOf("house/meta/llama-3.3-70b-versatile")).toBeNull();
    const gateways = { house: "groq" };
    expect(priceOf("house/meta/llama-3.3-70b-versatile", noon, { gateways })).toMatchObject({
      input: 590_000_000,
    });
  });

  it("is each vendor's own list with `vendor`", () => {
    const gateways = { groq: "vendor" };
    expect(priceOf("groq/openai/gpt-5-mini")).toBeNull();
    expect(priceOf("groq/openai/gpt-5-mini", noon, { gateways })).toMatchObject({
      input: 250_000_000,
    });
  });

  it("is empty with null", () => {
    expect(priceOf("house/openai/gpt-5-mini", noon, { gateways: { house: null } })).toBeNull();
  });

  it("must exist in the catalog", () => {
    expect(() => catalogPrices({ gateways: { house: "nobody" } })).toThrow(
      new RangeError(
        '`gateways.house` must be a list of the price catalog, "vendor" or null: "nobody" is unknown.',
      ),
    );
  });
});

describe("the models of a gateway", () => {
  const namesOf = (gateway: string, vendor: string | null, options = {}) =>
    catalogPrices(options).modelNames?.({ gateway, vendor }, noon) ?? [];

  it("are the priced models of its list, under their upstream names", () => {
    const names = namesOf("openrouter", null);
    expect(names).toContain("openai/gpt-5-mini");
    expect(names.length).toBeGreaterThan(300);
    for (const name of names.filter((one) => one.includes("/")))
      expect(priceOf(`openrouter/${name}`), name).not.toBeNull();
  });

  it("are its vendor's if the catalog doesn't know the gateway, and none if it knows neither", () => {
    expect(namesOf("house", "openai")).toEqual(namesOf("openai", null));
    expect(namesOf("house", null)).toEqual([]);
    expect(namesOf("house", null, { gateways: { house: "groq" } })).toEqual(namesOf("groq", null));
    expect(namesOf("openai", "openai", { gateways: { openai: null } })).toEqual([]);
  });
});

describe("the case of an id", () => {
  it("makes no difference to its price", () => {
    expect(priceOf("openai/openai/GPT-5-Mini")).toEqual(priceOf("openai/openai/gpt-5-mini"));
    expect(priceOf("openrouter/deepseek/deepseek-r1:FREE")).toMatchObject({ input: 0 });
    expect(priceOf("openrouter/openai/gpt-5-mini:ONLINE")).toBeNull();
  });
});

describe("many models", () => {
  it("fit a bounded cache and keep their prices", () => {
    const book = catalogPrices();
    const known = { gateway: "openai", vendor: "openai", model: "gpt-5-mini" };
    for (let i = 0; i < 2_500; i++)
      expect(book.priceOf({ ...known, model: `unheard-of-${i}` }, noon)).toBeNull();
    expect(book.priceOf(known, noon)?.input).toBe(250_000_000);
  });
});
