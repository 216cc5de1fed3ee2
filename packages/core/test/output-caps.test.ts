import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";
import { completionOf, failureOf } from "./wire.ts";
import { heldOn } from "./written.ts";

// "Hello" is estimated at 10 tokens of input.
const models = { "acme/large": { input: "1", output: "2", maxOutputTokens: 50_000 } };
const model = "test/acme/large";
const tokens = (limit: number, id = "tokens") =>
  ({ id, limit: { tokens: limit }, period: "day" }) as const;

async function asked(options: TestGatewayOptions) {
  const test = await createTestGateway({ models, ...options });
  const ask = (fields: object = {}) => test.gateway.fetch(test.chat({ model, ...fields }));
  const attempts = async () => {
    const { organizationId } = test.key;
    const { data } = await test.gateway.steps.list({ organizationId });
    return data.flatMap((step) => step.attempts);
  };
  return { ...test, ask, attempts };
}

describe("an attempt's output cap", () => {
  const policy = definePolicy({ rules: [permit("all", {}, { maxOutputTokens: 20_000 })] });

  it.each([
    ["the client's cap", { max_tokens: 100 }, {}, 100, "client"],
    ["the policy's cap, if it is smaller", { max_tokens: 30_000 }, { policy }, 20_000, "policy"],
    ["the model's maximum", {}, {}, 50_000, "model"],
    [
      "the model's maximum, even if the client asks for more",
      { max_tokens: 2 ** 53 - 1 },
      {},
      50_000,
      "model",
    ],
    [
      "limits.maxOutputTokens, for a model without a known maximum",
      { model: "test/a/b" },
      {},
      4_096,
      "limit",
    ],
    [
      "limits.maxOutputTokens for such a model, even if the client asks for more",
      { model: "test/a/b", max_tokens: 2 ** 53 - 1 },
      {},
      4_096,
      "limit",
    ],
  ] as const)("is %s, and is sent upstream", async (_, fields, options, most, from) => {
    const { provider, ask, attempts } = await asked({ budgets: [tokens(1_000_000)], ...options });
    await completionOf(ask(fields));
    expect(await attempts()).toMatchObject([{ outputCap: most, outputCapFrom: from }]);
    expect(provider.calls[0]?.request.maxOutputTokens).toBe(most);
  });

  it("doesn't cap the answer without a hard budget of tokens or dollars", async () => {
    const { provider, ask, attempts } = await asked({
      budgets: [{ id: "calls", limit: { requests: 9 }, period: "day" }],
    });
    await completionOf(ask());
    expect(await attempts()).toMatchObject([{ outputCap: 50_000, outputCapFrom: "model" }]);
    expect(provider.calls[0]?.request.maxOutputTokens).toBeUndefined();
  });
});

describe.each(stores)("a call without a cap, on %s", (_, open) => {
  it("holds the remainder of all its hard budgets, and records it", async () => {
    const test = await asked({
      store: open(),
      // 10 tokens of input are 10,000 nanodollars, and one of output is 2,000.
      budgets: [
        tokens(30_010),
        { id: "dollars", limit: { usd: "0.02001" }, period: "day" },
        { id: "soft", limit: { tokens: 1 }, mode: "soft", period: "day" },
      ],
    });
    const hold = test.provider.hold();
    const answer = completionOf(test.ask());
    await hold.reached();
    expect(await heldOn(test.gateway, "tokens")).toBe(10_010);
    expect(await heldOn(test.gateway, "dollars")).toBe(20_010_000);
    hold.release();
    await answer;
    expect(test.provider.calls[0]?.request.maxOutputTokens).toBe(10_000);
    expect(await test.attempts()).toMatchObject([{ outputCap: 10_000, outputCapFrom: "budget" }]);
  });

  it("is rejected only if not even limits.maxOutputTokens is left", async () => {
    for (const [limit, status] of [
      [4_105, 429],
      [4_106, 200],
    ] as const) {
      const { provider, ask } = await asked({ store: open(), budgets: [tokens(limit)] });
      const answer = await ask();
      expect(answer.status).toBe(status);
      if (status === 429) expect((await failureOf(answer)).code).toBe("budget_exceeded");
      expect(provider.calls.map(({ request }) => request.maxOutputTokens)).toEqual(
        status === 200 ? [4_096] : [],
      );
    }
  });

  it("of a model with a smaller maximum is rejected if not even that is left", async () => {
    const small = { "acme/large": { input: "1", output: "2", maxOutputTokens: 100 } };
    for (const [limit, status] of [
      [109, 429],
      [110, 200],
    ] as const) {
      const options = { store: open(), models: small, budgets: [tokens(limit)] };
      expect((await (await asked(options)).ask()).status).toBe(status);
    }
  });

  it("never lowers a cap that the client set", async () => {
    const { ask } = await asked({ store: open(), budgets: [tokens(10_000)] });
    expect((await ask({ max_tokens: 9_991 })).status).toBe(429);
    expect((await ask({ max_tokens: 9_990 })).status).toBe(200);
  });

  it("never holds more than the limit together with others", async () => {
    const limit = 100_000;
    const test = await asked({ store: open(), budgets: [tokens(limit), tokens(60_000, "second")] });
    const hold = test.provider.hold();
    const answers = Array.from({ length: 12 }, async () => (await test.ask()).status);
    await hold.reached();
    while (test.provider.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
    for (const [id, most] of [
      ["tokens", limit],
      ["second", 60_000],
    ] as const)
      expect(await heldOn(test.gateway, id)).toBeLessThanOrEqual(most);
    hold.release();
    const statuses = await Promise.all(answers);
    expect(statuses).toContain(200);
    const held = (await test.attempts()).map(({ outputCap }) => outputCap);
    expect(held.every((cap) => cap >= 4_096 && cap <= 50_000)).toBe(true);
  });

  it("falls back to a model with tighter budgets, with the remainder", async () => {
    const policy = definePolicy({
      rules: [permit("all", {}, { fallbacks: ["spare/acme/large"] })],
    });
    const test = await asked({
      store: open(),
      policy,
      budgets: [{ ...tokens(20_010), scope: { gateway: "spare" } }],
      retries: { max: 0 },
    });
    test.provider.fail(
      new ProviderError("Down.", { reason: "status_503", delivery: "answered", status: 503 }),
    );
    await completionOf(test.ask());
    expect(await test.attempts()).toMatchObject([
      { outputCap: 50_000, outputCapFrom: "model" },
      { outputCap: 20_000, outputCapFrom: "budget" },
    ]);
  });
});

describe("a retried attempt", () => {
  it("is held again if the first may have cost something, and not made if it doesn't fit", async () => {
    for (const [limit, calls] of [
      [39, 1],
      [40, 2],
    ] as const) {
      const { gateway, provider, clock, ask } = await asked({
        budgets: [tokens(limit)],
        retries: { max: 1, allowDuplicates: true },
      });
      provider.fail(new ProviderError("Gone.", { reason: "reset", delivery: "unknown" }), {
        times: 2,
      });
      await clock.until(ask({ max_tokens: 10 }));
      expect(provider.calls).toHaveLength(calls);
      const { data } = await gateway.budgets.status({ id: "tokens" });
      expect(data).toMatchObject([{ settled: 20 * calls, held: 0 }]);
    }
  });
});
