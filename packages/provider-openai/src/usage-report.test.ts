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

  it("accepts a cost in US dollars if it is exact and plausible (H14)", () => {
    const costOf = (cost: number | string): number | undefined =>
      usageReport({ prompt_tokens: 1, cost })?.costNanoUsd;
    expect(costOf(0)).toBe(0);
    expect(costOf(0.00014)).toBe(140_000);
    expect(costOf(1.5e-7)).toBe(150);
    for (const cost of [-1, 1e-10, 0.1 + 0.2, 20_000, "0.1"]) expect(costOf(cost)).toBeUndefined();
  });
});
