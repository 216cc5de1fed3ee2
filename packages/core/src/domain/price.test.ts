import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  costBounds,
  costOf,
  isPrice,
  maxCost,
  type Price,
  priceUsage,
  type Rates,
} from "./price.ts";
import { noUsage, type Usage, type UsageDetails } from "./usage.ts";

const price: Price = {
  input: 1_250_000_000,
  output: 10_000_000_000,
  cachedInput: 125_000_000,
  longPrompt: [{ above: 200_000, input: 2_500_000_000, output: 15_000_000_000 }],
  source: "catalog",
};

function usage(promptTokens: number, completionTokens: number, cachedTokens?: number) {
  const totalTokens = promptTokens + completionTokens;
  return {
    promptTokens,
    completionTokens,
    totalTokens,
    ...(cachedTokens === undefined ? {} : { cachedTokens }),
  };
}

describe("the cost of usage", () => {
  it("is rounded up once, in nanodollars", () => {
    expect(costOf(usage(1_000, 100), price)).toBe(1_250_000 + 1_000_000);
    expect(costOf(usage(1, 0), { ...price, input: 1 })).toBe(1);
    expect(costOf(usage(0, 0), price)).toBe(0);
  });

  it("counts cached tokens as part of the prompt", () => {
    expect(costOf(usage(1_000, 0, 400), price)).toBe(600 * 1_250 + 400 * 125);
    expect(costOf(usage(1_000, 0, 4_000), price)).toBe(1_000 * 125);
  });

  it("uses the prices of a long prompt for the whole request, from one token above the threshold", () => {
    expect(costOf(usage(200_000, 10, 100), price)).toBe(199_900 * 1_250 + 100 * 125 + 100_000);
    expect(costOf(usage(200_001, 10, 100), price)).toBe(200_001 * 2_500 + 150_000);
  });

  it("is the same on both sides of the largest exact product", () => {
    const tokens = fc.integer({ min: 0, max: 20_000_000 });
    const rate = fc.integer({ min: 0, max: 100_000_000_000 });
    fc.assert(
      fc.property(tokens, tokens, rate, rate, (prompt, completion, input, output) => {
        const nano = BigInt(prompt) * BigInt(input) + BigInt(completion) * BigInt(output);
        const flat: Price = { input, output, source: "custom" };
        const cost = costOf(usage(prompt, completion), flat);
        expect(BigInt(cost)).toBe((nano + 999_999n) / 1_000_000n);
      }),
    );
  });

  it("is the largest exact number if it would be more", () => {
    const dear: Price = { input: Number.MAX_SAFE_INTEGER, output: 0, source: "custom" };
    expect(costOf(usage(2_000_000, 0), dear)).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe("the highest cost of a hold", () => {
  const rate = fc.integer({ min: 0, max: 1_000_000_000 });
  const rates = fc.record(
    {
      input: rate,
      output: rate,
      cachedInput: rate,
      cacheWrite5m: rate,
      cacheWrite1h: rate,
      reasoning: rate,
      imageInput: rate,
      audioOutput: rate,
    },
    { requiredKeys: ["input", "output"] },
  );
  const prices = fc.record({ standard: rates, long: rates, priority: rates, request: rate });
  const part = fc.double({ min: 0, max: 1, noNaN: true });

  it("is never less than the actual cost, whatever kinds of tokens are used", () => {
    const tokens = fc.nat(1_000_000);
    fc.assert(
      fc.property(
        prices,
        tokens,
        tokens,
        fc.tuple(part, part, part, part),
        (table, p, c, parts) => {
          const price: Price = {
            ...table.standard,
            request: table.request,
            longPrompt: [{ above: 500_000, ...table.long }],
            tiers: { priority: table.priority },
            source: "custom",
          };
          expect(isPrice(price)).toBe(true);
          const [cached, written, kept, reasoned] = parts;
          const promptTokens = Math.floor(p * 0.9);
          const cacheWriteTokens = Math.floor(promptTokens * written);
          const used = {
            ...usage(promptTokens, c, Math.floor((promptTokens - cacheWriteTokens) * cached)),
            cacheWriteTokens,
            cacheWrite1hTokens: Math.floor(cacheWriteTokens * kept),
            reasoningTokens: Math.floor(c * reasoned),
          };
          const held = { promptTokens: p, completionTokens: c };
          for (const served of [null, "default", "priority"]) {
            const tiers = ["priority", "default"];
            const { costNanoUsd } = priceUsage(used, price, { served, tiers });
            expect(costNanoUsd).toBeLessThanOrEqual(maxCost(held, price, tiers) ?? -1);
            const { min, max } = costBounds(used, price);
            const estimated = priceUsage(used, price, { served, tiers }, "estimated");
            expect(estimated.basis).toBe("estimated");
            expect(estimated.costNanoUsd).toBeGreaterThanOrEqual(costNanoUsd);
            expect(estimated.costNanoUsd).toBeLessThanOrEqual(maxCost(held, price, tiers) ?? -1);
            if (served !== null) expect(costNanoUsd).toBeGreaterThanOrEqual(min);
            expect(costNanoUsd).toBeLessThanOrEqual(max);
          }
        },
      ),
    );
  });

  it("is unknown if a tier has no price", () => {
    const held = { promptTokens: 1, completionTokens: 1 };
    expect(maxCost(held, price, ["scale", "default"])).toBeNull();
  });
});

/** The detail of usage that each rate prices, and whether holds allow for it: a request has no audio. */
const usesOfRates: Readonly<
  Record<keyof Rates, readonly [usage: Partial<Usage>, isHeld: "held" | "not held"]>
> = {
  input: [{ promptTokens: 10 }, "held"],
  output: [{ completionTokens: 10 }, "held"],
  cachedInput: [{ promptTokens: 10, cachedTokens: 10 }, "held"],
  cacheWrite5m: [{ promptTokens: 10, cacheWriteTokens: 10 }, "held"],
  cacheWrite1h: [{ promptTokens: 10, cacheWriteTokens: 10, cacheWrite1hTokens: 10 }, "held"],
  reasoning: [{ completionTokens: 10, reasoningTokens: 10 }, "held"],
  audioInput: [{ promptTokens: 10, audioInputTokens: 10 }, "not held"],
  audioOutput: [{ completionTokens: 10, audioOutputTokens: 10 }, "held"],
  imageInput: [{ promptTokens: 10, imageInputTokens: 10 }, "held"],
  imageOutput: [{ completionTokens: 10, imageOutputTokens: 10 }, "held"],
};

/** The rate of each detail of usage. */
const rateOfDetail: Readonly<Record<keyof UsageDetails, keyof Rates>> = {
  cachedTokens: "cachedInput",
  cacheWriteTokens: "cacheWrite5m",
  cacheWrite1hTokens: "cacheWrite1h",
  reasoningTokens: "reasoning",
  audioInputTokens: "audioInput",
  audioOutputTokens: "audioOutput",
  imageInputTokens: "imageInput",
  imageOutputTokens: "imageOutput",
};

describe("every rate of a price", () => {
  const base: Price = { input: 1_000_000, output: 1_000_000, source: "custom" };

  it.each(Object.entries(usesOfRates))(
    "%s is charged, and held if a request can cause it",
    (rate, [usage, isHeld]) => {
      const dearer: Price = { ...base, [rate]: 5_000_000 };
      const full = { ...noUsage, ...usage };
      expect([costOf(full, base), costOf(full, dearer)]).toEqual([10, 50]);
      const held = { promptTokens: full.promptTokens, completionTokens: full.completionTokens };
      const most = maxCost(held, dearer, ["default"]);
      expect(most).toBe(isHeld === "held" ? 50 : 10);
      expect(isPrice({ ...base, [rate]: -1 })).toBe(false);
    },
  );

  it.each(Object.entries(rateOfDetail))("%s has a rate of its own", (detail, rate) => {
    expect(usesOfRates[rate][0]).toHaveProperty(detail);
  });
});
