import type { CompletionEvent } from "@tollgate/core/provider";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { completionOf } from "./wire.ts";

const most = Number.MAX_SAFE_INTEGER;

describe("absurd amounts", () => {
  it("don't make the gateway fail if a cap on the answer is too large to be priced", async () => {
    const { gateway, chat, key } = await createTestGateway({
      prices: { "test/tollgate/scripted": { input: 9_000, output: 9_000_000 } },
    });
    for (const fields of [{ max_tokens: most }, { max_completion_tokens: most }])
      expect((await gateway.fetch(chat(fields))).status).toBe(200);
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ outcome: "completed" }, { outcome: "completed" }]);
  });

  it("never hold more than the model's output limit (H3)", async () => {
    const { gateway, provider, chat } = await createTestGateway({
      budgets: [{ id: "tokens", limit: { tokens: 1_000_000 }, period: "day" }],
    });
    expect((await gateway.fetch(chat({ max_tokens: most }))).status).toBe(200);
    expect(provider.calls[0]?.request.maxOutputTokens).toBe(4_096);
  });

  it.each([
    { promptTokens: most, completionTokens: most },
    { promptTokens: -1, completionTokens: 5 },
    { promptTokens: 1.5, completionTokens: Number.NaN },
  ])(
    "reported by a provider are replaced by estimates, and marked as such (F14)",
    async (usage) => {
      const { provider, key } = await createTestGateway();
      const events: readonly CompletionEvent[] = [
        { type: "text-delta", text: "Hello" },
        { type: "usage", usage: { ...usage, cachedTokens: most, costNanoUsd: -1 } },
        { type: "finish", reason: "stop" },
      ];
      const careless = {
        ...provider.at("careless"),
        async *complete() {
          yield [{ type: "request-sent" as const, host: "careless.test", bodySha256: "00" }];
          yield events;
        },
      };
      const test = await createTestGateway({ providers: { careless } });
      const answer = await completionOf(test.gateway.fetch(test.chat({ model: "careless/a/b" })));
      expect(answer.usage.total_tokens).toBeLessThan(1_000);
      const { data } = await test.gateway.steps.list({ organizationId: key.organizationId });
      expect(data).toMatchObject([{ outcome: "completed", usageBasis: "estimated" }]);
      expect(data[0]).not.toHaveProperty("cachedTokens");
    },
  );
});
