import { describe, expect, it } from "vitest";
import { usageReport } from "./usage-report.ts";

describe("usage as an upstream reports it", () => {
  it("distinguishes zero from missing", () => {
    expect(usageReport({ prompt_tokens: 0, completion_tokens: 0 })).toEqual({
      promptTokens: 0,
      completionTokens: 0,
    });
    expect(usageReport({ prompt_tokens: 3, completion_tokens: null })).toEqual({ promptTokens: 3 });
    for (const none of [undefined, null, {}, [], "5", { total_tokens: 4 }])
      expect(usageReport(none)).toBeNull();
  });

  it("drops invalid counts (F14)", () => {
    for (const broken of [-1, 1.5, 1e12, "7", null, true])
      expect(usageReport({ prompt_tokens: broken, completion_tokens: 2 })).toEqual({
        completionTokens: 2,
      });
  });

  it("drops a detail larger than its count", () => {
    expect(
      usageReport({
        prompt_tokens: 5,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 6 },
        completion_tokens_details: { reasoning_tokens: 6 },
      }),
    ).toEqual({ promptTokens: 5, completionTokens: 5 });
  });

  it("drops details whose count is not reported", () => {
    expect(usageReport({ prompt_tokens_details: { cached_tokens: 0 } })).toBeNull();
  });

  it("adds reasoning to completion if the total shows that completion excludes it", () => {
    expect(
      usageReport({
        prompt_tokens: 10,
        completion_tokens: 4,
        total_tokens: 34,
        completion_tokens_details: { reasoning_tokens: 20 },
      }),
    ).toEqual({ promptTokens: 10, completionTokens: 24, reasoningTokens: 20 });
  });

  it("accepts a plausible cost in US dollars, rounded up to a nanodollar (H14)", () => {
    const costOf = (cost: number | string): number | undefined =>
      usageReport({ prompt_tokens: 1, cost })?.costNanoUsd;
    expect(costOf(0)).toBe(0);
    expect(costOf(0.00014)).toBe(140_000);
    expect(costOf(1.5e-7)).toBe(150);
    expect(costOf(0.000368968443)).toBe(368_969);
    expect(costOf(1e-10)).toBe(1);
    expect(costOf(0.1 + 0.2)).toBe(300_000_000);
    expect(costOf(9_999.999999999)).toBe(9_999_999_999_999);
    for (const cost of [-1, -1e-10, 20_000, "0.1"]) expect(costOf(cost)).toBeUndefined();
  });

  it("reads xAI's cost in its own unit, rounded up to a nanodollar", () => {
    const costOf = (cost_in_usd_ticks: number): number | undefined =>
      usageReport({ prompt_tokens: 1, cost_in_usd_ticks })?.costNanoUsd;
    expect(costOf(37_756_000)).toBe(3_775_600);
    expect(costOf(1)).toBe(1);
    expect(costOf(0)).toBe(0);
    expect(costOf(-1)).toBeUndefined();
  });

  it("adds what the provider behind OpenRouter charges to the operator's own key", () => {
    const costOf = (usage: object): number | undefined =>
      usageReport({ prompt_tokens: 1, ...usage })?.costNanoUsd;
    const cost_details = { upstream_inference_cost: 0.0360795 };
    expect(costOf({ cost: 0, is_byok: true, cost_details })).toBe(36_079_500);
    expect(costOf({ cost: 0.0018, is_byok: true, cost_details })).toBe(37_879_500);
    expect(costOf({ cost: 0.0360795, is_byok: false, cost_details })).toBe(36_079_500);
    for (const unknown of [{}, { cost_details: { upstream_inference_cost: null } }])
      expect(costOf({ cost: 0, is_byok: true, ...unknown })).toBeUndefined();
  });

  it.each([
    ["OpenAI", { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 4 } }, 9, 4, undefined],
    [
      "OpenRouter",
      { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 } },
      9,
      4,
      2,
    ],
    [
      "Qwen",
      {
        prompt_tokens: 9,
        prompt_tokens_details: { cached_tokens: 4, cache_creation_input_tokens: 2 },
      },
      9,
      4,
      2,
    ],
    ["DeepSeek", { prompt_tokens: 9, prompt_cache_hit_tokens: 4 }, 9, 4, undefined],
    ["Moonshot", { prompt_tokens: 9, cached_tokens: 4 }, 9, 4, undefined],
    [
      "Anthropic, which counts the cache apart,",
      { prompt_tokens: 9, input_tokens: 9, cache_read_input_tokens: 4 },
      13,
      4,
      undefined,
    ],
    [
      "Anthropic without a prompt",
      { input_tokens: 9, cache_creation_input_tokens: 5 },
      14,
      undefined,
      5,
    ],
    [
      "a proxy with too few prompt tokens",
      { prompt_tokens: 9, cache_read_input_tokens: 8, cache_creation_input_tokens: 2 },
      19,
      8,
      2,
    ],
    [
      "a proxy whose prompt includes the cache",
      { prompt_tokens: 10, cache_read_input_tokens: 8, cache_creation_input_tokens: 2 },
      10,
      8,
      2,
    ],
  ])("reads the cache of %s", (_, usage, promptTokens, cachedTokens, cacheWriteTokens) => {
    const report = usageReport(usage);
    expect(report?.promptTokens).toBe(promptTokens);
    expect(report?.cachedTokens).toBe(cachedTokens);
    expect(report?.cacheWriteTokens).toBe(cacheWriteTokens);
  });

  it.each([
    [{ completion_tokens: 4, total_tokens: 14 }, 4],
    [{ completion_tokens: 4, total_tokens: 20 }, 10],
    [{ completion_tokens: 4, total_tokens: 13 }, 4],
    [{ completion_tokens: 4 }, 4],
    [{ total_tokens: 20 }, undefined],
    [
      {
        completion_tokens: 4,
        total_tokens: 21,
        completion_tokens_details: { reasoning_tokens: 3 },
      },
      4,
    ],
  ])("finds reasoning that only the total of %j shows", (usage, completionTokens) => {
    expect(usageReport({ prompt_tokens: 10, ...usage })?.completionTokens).toBe(completionTokens);
  });

  it("reads every detail, and the tier of the answer before that of its usage", () => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 100,
      service_tier: "flex",
      cache_creation: { ephemeral_1h_input_tokens: 2 },
      prompt_tokens_details: {
        cached_tokens: 1,
        cache_write_tokens: 3,
        audio_tokens: 4,
        image_tokens: 5,
      },
      completion_tokens_details: { reasoning_tokens: 6, audio_tokens: 7, image_tokens: 8 },
    };
    const report = {
      promptTokens: 100,
      completionTokens: 100,
      cachedTokens: 1,
      cacheWriteTokens: 3,
      cacheWrite1hTokens: 2,
      audioInputTokens: 4,
      imageInputTokens: 5,
      reasoningTokens: 6,
      audioOutputTokens: 7,
      imageOutputTokens: 8,
    };
    expect(usageReport(usage)).toEqual({ ...report, serviceTier: "flex" });
    expect(usageReport(usage, "priority")).toEqual({ ...report, serviceTier: "priority" });
    expect(usageReport({ prompt_tokens: 1_000_000_000 })).toEqual({ promptTokens: 1_000_000_000 });
    expect(usageReport({ prompt_tokens: 1_000_000_001 })).toBeNull();
    expect(usageReport({ cost: 10_000 })).toEqual({ costNanoUsd: 10_000_000_000_000 });
  });
});
