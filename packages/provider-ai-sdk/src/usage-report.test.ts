import { describe, expect, it } from "vitest";
import { usageReport } from "./usage-report.ts";

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
});
