import type { Billing, ModelConfiguration } from "@tollgate/core/provider";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import type { BudgetConfiguration } from "../src/index.ts";
import { definePolicy, forbid, permit } from "../src/policy.ts";
import { failureOf } from "./wire.ts";

const model = "test/a/one";
const prices: ModelConfiguration = {
  input: 1,
  output: 2,
  tiers: { priority: { input: 2, output: 4 }, flex: { input: "0.5", output: 1 } },
};
const usd: BudgetConfiguration = { id: "usd", limit: { usd: 1 }, period: "day" };

const open = (options: Parameters<typeof createTestGateway>[0] = {}) =>
  createTestGateway({ models: { "a/one": prices }, ...options });

describe("service tiers and hard dollar budgets", () => {
  it("hold twice as much for a tier at twice the price (H4)", async () => {
    const held = async (service_tier?: string, billing?: Billing) => {
      const { gateway, provider, chat } = await open({
        budgets: [usd],
        ...(billing && { billing }),
      });
      const barrier = provider.hold();
      const answer = gateway.fetch(chat({ model, ...(service_tier && { service_tier }) }));
      await barrier.reached();
      const { data } = await gateway.budgets.status({ id: "usd" });
      barrier.release();
      await (await answer).text();
      return data[0]?.held ?? 0;
    };
    const standard = await held();
    expect(standard).toBeGreaterThan(0);
    expect(await held("default")).toBe(standard);
    expect(await held("auto")).toBe(standard);
    expect(await held("priority")).toBe(2 * standard);
    // A call that requests flex may be served at the standard tier.
    expect(await held("flex")).toBe(standard);
    const open2 = { autoTiers: ["priority"] };
    expect(await held("auto", open2)).toBe(2 * standard);
    expect(await held(undefined, open2)).toBe(2 * standard);
    expect(await held("default", open2)).toBe(standard);
  });

  it("reject a tier without a price before anything is sent", async () => {
    const { gateway, provider, chat, key } = await open({ budgets: [usd] });
    const failure = await failureOf(gateway.fetch(chat({ model, service_tier: "scale" })));
    expect(failure).toMatchObject({ code: "price_unknown", param: "service_tier" });
    expect(provider.calls).toEqual([]);
    const { organizationId } = key;
    expect((await gateway.steps.list({ organizationId })).data).toEqual([]);
    expect((await gateway.decisions.list({ organizationId })).data).toHaveLength(1);
  });

  it("allow a tier without a price if no such budget applies, and estimate its cost", async () => {
    const { gateway, provider, chat, key } = await open();
    provider.reply({
      text: "a",
      usage: { promptTokens: 10, completionTokens: 5, serviceTier: "scale" },
    });
    expect((await gateway.fetch(chat({ model, service_tier: "scale" }))).status).toBe(200);
    expect(provider.calls[0]?.request.serviceTier).toBe("scale");
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([
      { serviceTier: "scale", usageBasis: "reported", costBasis: "estimated", costNanoUsd: 20_000 },
    ]);
  });

  it("drop an invalid served tier", async () => {
    const { gateway, provider, chat, key } = await open();
    const usage = { promptTokens: 10, completionTokens: 5, serviceTier: "<script>" };
    provider.reply({ text: "a", usage });
    await (await gateway.fetch(chat({ model }))).text();
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ serviceTier: null, costNanoUsd: 20_000 }]);
  });
});

describe("service tiers and the policy", () => {
  it("let a rule forbid a tier, under each of its names", async () => {
    const policy = definePolicy({
      rules: [
        permit("all", {}),
        forbid("no-priority", { serviceTier: ["priority", "fast"] }, { reason: "Too dear." }),
      ],
    });
    const { gateway, chat } = await open({ policy });
    for (const service_tier of ["priority", "fast"])
      expect(await failureOf(gateway.fetch(chat({ model, service_tier })))).toMatchObject({
        code: "policy_denied",
      });
    for (const service_tier of ["auto", "default", "flex"])
      expect((await gateway.fetch(chat({ model, service_tier }))).status).toBe(200);
  });

  it("let a rule permit only the standard tier", async () => {
    const policy = definePolicy({ rules: [permit("standard", { serviceTier: "standard" })] });
    const { gateway, chat } = await open({ policy });
    expect((await gateway.fetch(chat({ model }))).status).toBe(200);
    expect((await gateway.fetch(chat({ model, service_tier: "flex" }))).status).toBe(403);
  });

  it("let a rule set the tier to send, which is also the one held", async () => {
    const policy = definePolicy({
      rules: [permit("capped", {}, { serviceTier: "default" })],
    });
    const { gateway, provider, chat, key } = await open({ policy, budgets: [usd] });
    expect((await gateway.fetch(chat({ model, service_tier: "scale" }))).status).toBe(200);
    expect(provider.calls[0]?.request).not.toHaveProperty("serviceTier");
    const { organizationId } = key;
    const { data } = await gateway.decisions.list({ organizationId });
    expect(data).toMatchObject([
      { facts: { serviceTier: "scale" }, obligations: { serviceTier: "default" } },
    ]);
    const steps = await gateway.steps.list({ organizationId });
    expect(steps.data[0]?.attempts).toMatchObject([{ requestedServiceTier: "default" }]);
  });

  it("treat a served tier of auto as not reported: the most expensive one held counts", async () => {
    const { gateway, provider, chat, key } = await open({ billing: { autoTiers: ["priority"] } });
    const usage = { promptTokens: 100, completionTokens: 10 };
    provider.reply({ usage: { ...usage, serviceTier: "auto" } });
    await (await gateway.fetch(chat({ model }))).text();
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(data[0]?.attempts).toMatchObject([
      { serviceTier: null, costNanoUsd: 240_000, costBasis: "estimated" },
    ]);
  });

  it("send the standard tier by name if omitting it could get another", async () => {
    const policy = definePolicy({ rules: [permit("capped", {}, { serviceTier: "default" })] });
    const { gateway, provider, chat } = await open({
      policy,
      billing: { autoTiers: ["priority"] },
    });
    expect((await gateway.fetch(chat({ model }))).status).toBe(200);
    expect(provider.calls[0]?.request.serviceTier).toBe("default");
  });

  it("reject invalid names", () => {
    const rules = [permit("a", { serviceTier: "no such tier!" })];
    expect(() => definePolicy({ rules })).toThrow("must be the name of a service tier");
    const options = [permit("a", {}, { serviceTier: "" })];
    expect(() => definePolicy({ rules: options })).toThrow("must be the name of a service tier");
  });
});

describe("invalid prices", () => {
  it.each([
    ["a negative cache price", { input: 1, output: 1, cacheWrite: -1 }, "cacheWrite` must be"],
    ["an unknown cache time", { input: 1, output: 1, cacheWrite: { "2h": 1 } }, "cacheWrite.2h."],
    [
      "a tier by another name of the standard one",
      { input: 1, output: 1, tiers: { auto: { input: 1, output: 1 } } },
      "tiers.auto` must be the lower-case name of a tier",
    ],
    [
      "a tier without output",
      { input: 1, output: 1, tiers: { flex: { input: 1 } } },
      "tiers.flex.output` must be US dollars",
    ],
    [
      "a mistyped price of a tier",
      { input: 1, output: 1, tiers: { flex: { input: 1, output: 1, cachedinput: 1 } } },
      "tiers.flex.cachedinput",
    ],
    [
      "thresholds that do not ascend",
      {
        input: 1,
        output: 1,
        longPrompt: [
          { above: 9, input: 1, output: 1 },
          { above: 9, input: 1, output: 1 },
        ],
      },
      "longPrompt` must be in ascending order",
    ],
    ["an audio price that is not an object", { input: 1, output: 1, audio: 3 }, "audio` must be"],
    ["a huge price per request", { input: 1, output: 1, request: 1e30 }, "request` must be"],
    [
      "a tier without standard prices",
      { tiers: { flex: { input: 1, output: 1 } } },
      "must have both `input` and `output`",
    ],
  ])("with %s are rejected", async (_, written, problem) => {
    const models: Record<string, ModelConfiguration> = JSON.parse(
      JSON.stringify({ "a/one": written }),
    );
    await expect(open({ models })).rejects.toThrow(problem);
  });

  it.each([
    [{ reportedCost: "always" }, "`billing.reportedCost` must be"],
    [{ reportedCostFactor: 0.5 }, "`billing.reportedCostFactor` must be"],
    [{ reportedCostFactor: Number.MAX_VALUE }, "`billing.reportedCostFactor` must be"],
    [{ autoTiers: "priority" }, "`billing.autoTiers` must be"],
  ])("with billing %j are rejected", async (written, problem) => {
    const billing: Billing = JSON.parse(JSON.stringify(written));
    await expect(open({ billing })).rejects.toThrow(problem);
  });

  it("from a price book count as missing if they are invalid", async () => {
    const prices = {
      priceOf: () => ({ input: -1, output: Number.NaN, source: "catalog" as const }),
      factsOf: () => ({ maxOutputTokens: null, reasons: null }),
    };
    const { gateway, chat, key } = await createTestGateway({ models: {}, prices });
    expect((await gateway.fetch(chat({ model }))).status).toBe(200);
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ costNanoUsd: null }]);
  });
});
