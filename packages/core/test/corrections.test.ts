import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";
import { completionOf } from "./wire.ts";

const budgets = [
  { id: "tokens", limit: { tokens: 100_000 }, period: "day" },
  { id: "usd", limit: { usd: 1 }, period: "total" },
] as const;
// A plain answer uses 10 input tokens at 1,000 nanodollars and 5 output tokens at 2,000.
const recorded = { promptTokens: 10, completionTokens: 5, totalTokens: 15, costNanoUsd: 20_000 };

async function settledOn({ gateway }: TestGateway, ...ids: readonly string[]): Promise<unknown> {
  const statuses = await Promise.all(ids.map((id) => gateway.budgets.status({ id })));
  return statuses.map(({ data }) => data[0]?.settled);
}

async function withOneStep(store: (typeof stores)[number][1]) {
  const test = await createTestGateway({ store: store(), budgets });
  await completionOf(test.gateway.fetch(test.chat()));
  const { organizationId } = test.key;
  const [step] = (await test.gateway.steps.list({ organizationId })).data;
  return { test, organizationId, id: step?.id ?? "" };
}

describe.each(stores)("a correction on %s", (_, open) => {
  it("changes a Step's sums, its activity and its budgets, and keeps the first record readable", async () => {
    const { test, organizationId, id } = await withOneStep(open);
    const { gateway, clock, store } = test;
    await clock.advance("1h");
    const usage = { promptTokens: 20, completionTokens: 30, cachedTokens: 5 };
    const first = { usage, costNanoUsd: 90_000, reason: "counted anew", actor: "ops" };
    await gateway.steps.correct({ organizationId, id, ...first });
    expect(await settledOn(test, "tokens", "usd")).toEqual([50, 90_000]);
    const step = await gateway.steps.correct({
      organizationId,
      id,
      attempt: 1,
      costNanoUsd: 7,
      reason: "the invoice",
    });
    const inForce = { ...usage, totalTokens: 50, costNanoUsd: 7 };
    expect(step).toMatchObject({
      ...inForce,
      attempts: [
        {
          ...inForce,
          recorded,
          corrections: [
            { ...usage, costNanoUsd: 90_000, at: "2026-01-01T01:00:00.000Z", actor: "ops" },
            { ...inForce, actor: null, reason: "the invoice" },
          ],
        },
      ],
    });
    expect(await gateway.steps.get({ organizationId, id })).toEqual(step);
    expect((await gateway.steps.list({ organizationId })).data).toEqual([step]);
    expect((await gateway.activity.list({ organizationId })).data).toMatchObject([inForce]);
    expect(await settledOn(test, "tokens", "usd")).toEqual([50, 7]);

    const leaves = await store.evidence.list({ organizationId }, { cursor: null, limit: 100 });
    const corrections = leaves.data.filter(({ kind }) => kind === "correction");
    expect(corrections.map(({ meta }) => JSON.parse(meta))).toMatchObject([
      { actor: "ops", step: id, attempt: 1, costNanoUsd: 90_000, usage },
      { actor: null, step: id, attempt: 1, costNanoUsd: 7, usage: null },
    ]);
    expect(JSON.stringify(leaves)).not.toContain("the invoice");
  });

  it("applies to the attempt it names, and changes only the budgets that this attempt was charged to", async () => {
    const test = await createTestGateway({
      store: open(),
      policy: definePolicy({ rules: [permit("all", {}, { fallbacks: ["spare/a/two"] })] }),
      retries: { max: 0 },
      prices: { "spare/a/two": { input: 1, output: 2 } },
      budgets: ["test", "spare"].map((gateway) => ({
        id: gateway,
        scope: { gateway },
        limit: { usd: 1 },
        period: "day",
      })),
    });
    const { gateway, provider, chat, key } = test;
    const { organizationId } = key;
    provider.fail(
      new ProviderError("Down.", { reason: "down", delivery: "answered", status: 503 }),
    );
    await completionOf(gateway.fetch(chat()));
    const [step] = (await gateway.steps.list({ organizationId })).data;
    const place = { organizationId, id: step?.id ?? "", reason: "billed after all" };
    await gateway.steps.correct({ ...place, attempt: 1, costNanoUsd: 500 });
    expect(await settledOn(test, "test", "spare")).toEqual([500, 20_000]);
    const corrected = await gateway.steps.correct({ ...place, costNanoUsd: 600 });
    expect(await settledOn(test, "test", "spare")).toEqual([500, 600]);
    expect(corrected).toMatchObject({ costNanoUsd: 1_100, promptTokens: 10, completionTokens: 5 });
  });

  it("of tokens alone charges nothing for an attempt whose price is unknown", async () => {
    const soft = budgets.map((budget) => ({ ...budget, mode: "soft" }) as const);
    const test = await createTestGateway({ store: open(), models: {}, budgets: soft });
    const { gateway, chat, key } = test;
    const { organizationId } = key;
    await completionOf(gateway.fetch(chat()));
    const [step] = (await gateway.steps.list({ organizationId })).data;
    const place = { organizationId, id: step?.id ?? "", reason: "counted again" };
    const usage = { promptTokens: 20, completionTokens: 30 };
    expect(await gateway.steps.correct({ ...place, usage })).toMatchObject({ costNanoUsd: null });
    expect(await settledOn(test, "tokens", "usd")).toEqual([50, 0]);
    await gateway.steps.correct({ ...place, costNanoUsd: 700 });
    expect(await settledOn(test, "tokens", "usd")).toEqual([50, 700]);
  });

  it("frees or uses up room under the limit", async () => {
    const { test, organizationId, id } = await withOneStep(open);
    const { gateway, chat } = test;
    await gateway.steps.correct({ organizationId, id, costNanoUsd: 1_000_000_000, reason: "late" });
    expect((await gateway.fetch(chat())).status).toBe(429);
    await gateway.steps.correct({ organizationId, id, costNanoUsd: 0, reason: "refunded" });
    expect((await gateway.fetch(chat())).status).toBe(200);
  });

  const both = { costNanoUsd: 1, reason: "a" };
  it.each<[string, object, string, string?]>([
    ["an unknown Step", { id: "nothing" }, "step_not_found"],
    ["another organization's Step", { organizationId: "organization-2" }, "step_not_found"],
    ["no organization", { organizationId: undefined }, "invalid_argument", "organizationId"],
    ["an unknown attempt", { attempt: 2 }, "invalid_argument", "attempt"],
    ["a fraction of an attempt", { attempt: 0.5 }, "invalid_argument", "attempt"],
    ["neither a cost nor usage", { costNanoUsd: undefined }, "invalid_argument", "usage"],
    ["a negative cost", { costNanoUsd: -1 }, "invalid_argument", "costNanoUsd"],
    ["a cost that is not a number", { costNanoUsd: Number.NaN }, "invalid_argument", "costNanoUsd"],
    [
      "an infinite cost",
      { costNanoUsd: Number.POSITIVE_INFINITY },
      "invalid_argument",
      "costNanoUsd",
    ],
    [
      "a cost beyond the largest safe integer",
      { costNanoUsd: 2 ** 53 },
      "invalid_argument",
      "costNanoUsd",
    ],
    [
      "a missing count of completion tokens",
      { usage: { promptTokens: 1 } },
      "invalid_argument",
      "usage.completionTokens",
    ],
    [
      "a sum of tokens beyond the largest safe integer",
      { usage: { promptTokens: Number.MAX_SAFE_INTEGER, completionTokens: 1 } },
      "invalid_argument",
      "usage",
    ],
    [
      "a part larger than its count",
      { usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 2 } },
      "invalid_argument",
      "usage.cachedTokens",
    ],
    [
      "an unknown member",
      { usage: { promptTokens: 1, completionTokens: 1, totalTokens: 5 } },
      "invalid_argument",
      "usage.totalTokens",
    ],
    ["no reason", { reason: "" }, "invalid_argument", "reason"],
    ["an empty actor", { actor: "" }, "invalid_argument", "actor"],
  ])("is refused with %s and leaves nothing behind", async (_case, wrong, code, param) => {
    const { test, organizationId, id } = await withOneStep(open);
    const { gateway, store } = test;
    const before = await store.evidence.list({ organizationId }, { cursor: null, limit: 100 });
    const correction = { organizationId, id, ...both, ...wrong };
    await expect(gateway.steps.correct(correction)).rejects.toMatchObject({
      code,
      ...(param === undefined ? {} : { param }),
    });
    expect(await settledOn(test, "tokens", "usd")).toEqual([15, 20_000]);
    expect(await store.evidence.list({ organizationId }, { cursor: null, limit: 100 })).toEqual(
      before,
    );
  });

  it("is refused while the Step is open", async () => {
    const { gateway, provider, chat, key } = await createTestGateway({ store: open(), budgets });
    const hold = provider.hold();
    const answering = gateway.fetch(chat());
    await hold.reached();
    const { organizationId } = key;
    const [step] = (await gateway.steps.list({ organizationId })).data;
    const correction = { organizationId, id: step?.id ?? "", ...both };
    await expect(gateway.steps.correct(correction)).rejects.toMatchObject({
      code: "invalid_argument",
      param: "id",
    });
    hold.release();
    await completionOf(answering);
    expect(await gateway.steps.correct(correction)).toMatchObject({ costNanoUsd: 1 });
  });
});
