import type { JSONObject } from "@ai-sdk/provider";
import { describe, expect, it } from "vitest";
import { usageReport } from "./usage-report.ts";

const both = { cachedTokens: 64, cacheWriteTokens: 32 };
const written = { cachedTokens: 0, cacheWriteTokens: 32 };
const output = { total: 400, text: 400, reasoning: undefined };

describe("usage as the AI SDK reports it", () => {
  it("includes Anthropic's cache tokens, their lifetime and the service tier", () => {
    const inputTokens = { total: 1_850, noCache: 50, cacheRead: 1_500, cacheWrite: 300 };
    const raw = {
      input_tokens: 50,
      cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
      service_tier: "standard",
    };
    expect(usageReport({ inputTokens, outputTokens: output, raw })).toEqual({
      promptTokens: 1_850,
      completionTokens: 400,
      cachedTokens: 1_500,
      cacheWriteTokens: 300,
      cacheWrite1hTokens: 100,
      serviceTier: "standard",
    });
  });

  it("drops cache writes that exceed the tokens not read from the cache, and keeps OpenAI's tier", () => {
    const inputTokens = { total: 100, noCache: 0, cacheRead: 90, cacheWrite: 20 };
    const metadata = { openai: { serviceTier: "flex" } };
    expect(usageReport({ inputTokens, outputTokens: output }, metadata)).toEqual({
      promptTokens: 100,
      completionTokens: 400,
      cachedTokens: 90,
      serviceTier: "flex",
    });
  });

  it.each([
    ["DeepSeek's", { prompt_cache_hit_tokens: 64 }, { cachedTokens: 64 }],
    ["Moonshot's", { cached_tokens: 64 }, { cachedTokens: 64 }],
    ["Anthropic's", { cache_read_input_tokens: 64, cache_creation_input_tokens: 32 }, both],
    ["OpenRouter's", { prompt_tokens_details: { cache_write_tokens: 32 } }, written],
    ["Qwen's", { prompt_tokens_details: { cache_creation_input_tokens: 32 } }, written],
    ["DeepSeek's", { prompt_cache_hit_tokens: 101 }, { cachedTokens: 0 }],
  ])("has %s cache tokens %j in the raw usage", (_, raw, expected) => {
    // As the AI SDK's provider for any OpenAI-compatible upstream gives them.
    const inputTokens = { total: 100, noCache: 100, cacheRead: 0, cacheWrite: undefined };
    expect(usageReport({ inputTokens, outputTokens: output, raw })).toEqual({
      promptTokens: 100,
      completionTokens: 400,
      ...expected,
    });
  });

  it.each([
    [{ cache_read_input_tokens: 80, cache_creation_input_tokens: 30 }, 210],
    [{ cache_read_input_tokens: 80, cache_creation_input_tokens: 30, total_tokens: 610 }, 210],
    [{ cache_read_input_tokens: 80, input_tokens: 100 }, 180],
    [{ cache_read_input_tokens: 80, cache_creation_input_tokens: 20 }, 100],
    [{ prompt_tokens_details: { cached_tokens: 80 }, input_tokens: 100 }, 100],
  ])("adds Anthropic's cache tokens %j to prompt tokens without them", (cache, promptTokens) => {
    const inputTokens = { total: 100, noCache: 100, cacheRead: 0, cacheWrite: undefined };
    const raw = { prompt_tokens: 100, ...cache };
    expect(usageReport({ inputTokens, outputTokens: output, raw })).toMatchObject({
      promptTokens,
      completionTokens: 400,
      cachedTokens: "cache_read_input_tokens" in cache ? 80 : 0,
    });
  });

  it.each([
    [100, undefined, { prompt_tokens: 10, total_tokens: 130 }, 120],
    [100, 0, { prompt_tokens: 10, total_tokens: 130 }, 120],
    [100, 20, { prompt_tokens: 10, total_tokens: 130 }, 120],
    // The AI SDK already added it, or the figures don't add up.
    [120, 20, { prompt_tokens: 10, total_tokens: 130 }, 120],
    [100, 10, { prompt_tokens: 10, total_tokens: 130 }, 100],
    [100, 0, { prompt_tokens: 10, total_tokens: 105 }, 100],
    [100, 0, { total_tokens: 130 }, 100],
  ])(
    "adds reasoning that only the total shows to %j with %j of it",
    (total, reasoning, raw, all) => {
      const inputTokens = { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined };
      const outputTokens = { total, text: undefined, reasoning };
      expect(usageReport({ inputTokens, outputTokens, raw })?.completionTokens).toBe(all);
    },
  );

  it("takes the cost from the raw usage, rounded up, with what a key of the operator's own paid", () => {
    const inputTokens = { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined };
    const costOf = (raw: JSONObject): number | undefined =>
      usageReport({ inputTokens, outputTokens: output, raw })?.costNanoUsd;
    const cost_details = { upstream_inference_cost: 0.0360795 };
    expect(costOf({ cost: 0.000368968443, is_byok: false, cost_details })).toBe(368_969);
    expect(costOf({ cost: 0.1 + 0.2 })).toBe(300_000_000);
    expect(costOf({ cost: 0.0018, is_byok: true, cost_details })).toBe(37_879_500);
    // xAI's unit.
    expect(costOf({ cost_in_usd_ticks: 37_756_001 })).toBe(3_775_601);
    for (const raw of [{ cost: 0, is_byok: true }, { cost: -1 }, { cost: "1" }, { cost: 20_000 }])
      expect(costOf(raw)).toBeUndefined();
  });
});
