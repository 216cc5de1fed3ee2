import type { PriceBook, PriceTable, RepricedAttempt, RepriceOptions } from "@tollgate/core";
import { ProviderError } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { stores } from "./stores.ts";
import { turnsWithChanges } from "./turns.ts";

const old: PriceTable = { "test/a/one": { input: 1, output: 2 } };
const newer: PriceTable = {
  "test/a/one": { input: 2, output: 4 },
  "test/a/new": { input: 1, output: 1 },
};
const costOf = { old: 10 * 1_000 + 5 * 2_000, newer: 10 * 2_000 + 5 * 4_000 };

describe.each(stores)("repricing on %s", (_, open) => {
  async function spent(store = open()) {
    const scope = { organization: "organization-1" };
    const budget = {
      id: "month",
      scope,
      limit: { usd: 9 },
      period: "month",
      mode: "soft",
    } as const;
    const test = await createTestGateway({
      store,
      prices: old,
      models: {},
      billing: { reportedCost: "trust", reportedCostFactor: 1_000 },
      budgets: [budget],
    });
    const { gateway, provider, chat, key } = test;
    for (const model of ["a/one", "a/new", "a/unheard"])
      await (await gateway.fetch(chat({ model: `test/${model}` }))).text();
    provider.reply({ text: "x", usage: { promptTokens: 1, completionTokens: 1, costNanoUsd: 7 } });
    await (await gateway.fetch(chat({ model: "test/a/one" }))).text();
    const { organizationId } = key;
    const reprice = async (repricing: RepriceOptions) => {
      const rows: RepricedAttempt[] = [];
      for await (const row of gateway.steps.reprice({ organizationId }, repricing, { limit: 3 }))
        rows.push(row);
      return rows.map((row) => [
        row.model,
        row.costNanoUsd,
        row.repricedNanoUsd,
        row.differenceNanoUsd,
        row.corrected,
      ]);
    };
    const settled = async () => (await gateway.budgets.status({ id: "month" })).data[0]?.settled;
    return { ...test, organizationId, reprice, settled };
  }

  it("shows the cost of each attempt at the other prices, and changes nothing", async () => {
    const { gateway, organizationId, reprice, settled } = await spent();
    const before = await gateway.steps.list({ organizationId });
    expect(await reprice({ prices: newer })).toEqual([
      ["test/a/one", 7, null, 0, false],
      ["test/a/unheard", null, null, 0, false],
      ["test/a/new", null, 15_000, 15_000, false],
      ["test/a/one", costOf.old, costOf.newer, costOf.newer - costOf.old, false],
    ]);
    expect(await gateway.steps.list({ organizationId })).toEqual(before);
    expect(await settled()).toBe(costOf.old + 7);
  });

  it("corrects costs that differ, keeps the recorded ones, and corrects none twice", async () => {
    const { gateway, organizationId, reprice, settled } = await spent();
    const applied = { prices: newer, apply: true, actor: "ops" };
    expect((await reprice(applied)).map((row) => row.at(-1))).toEqual([false, false, true, true]);
    const total = 7 + 15_000 + costOf.newer;
    expect(await settled()).toBe(total);
    expect(await gateway.steps.summarize({ organizationId }, [])).toMatchObject([
      { costNanoUsd: total, unknownCosts: 1 },
    ]);
    const { data } = await gateway.steps.list({ organizationId });
    expect(data.at(-1)?.attempts[0]).toMatchObject({
      costNanoUsd: costOf.newer,
      recorded: { costNanoUsd: costOf.old },
      corrections: [{ actor: "ops", reason: "repriced" }],
    });
    expect((await reprice(applied)).every((row) => row.at(-1) === false)).toBe(true);
    const changes = await gateway.changes.list({ organizationId, kind: "correction" });
    expect(changes.data).toHaveLength(2);

    expect((await reprice({ ...applied, prices: old })).map((row) => row[3])).toEqual([
      0,
      0,
      0,
      costOf.old - costOf.newer,
    ]);
    expect(await settled()).toBe(7 + 15_000 + costOf.old);
  });

  it("keeps a cost that someone corrected from an invoice", async () => {
    const { gateway, organizationId, reprice } = await spent();
    const { data } = await gateway.steps.list({ organizationId });
    const id = data.at(-1)?.id ?? "";
    await gateway.steps.correct({ organizationId, id, costNanoUsd: 3, reason: "the invoice" });
    expect((await reprice({ prices: newer, apply: true })).at(-1)).toEqual([
      "test/a/one",
      3,
      null,
      0,
      false,
    ]);
  });

  it("keeps a cost that someone corrects while it runs", async () => {
    const store = open();
    let meanwhile = async (): Promise<void> => {};
    const correct: Store["correct"] = async (intent) => {
      const first = meanwhile;
      meanwhile = async () => {};
      await first();
      return store.correct(intent);
    };
    const { gateway, organizationId, reprice, settled } = await spent({ ...store, correct });
    const id = (await gateway.steps.list({ organizationId })).data.at(-1)?.id ?? "";
    meanwhile = async () => {
      await gateway.steps.correct({ organizationId, id, costNanoUsd: 3, reason: "the invoice" });
    };
    const prices = { "test/a/one": { input: 2, output: 4 } };
    expect((await reprice({ prices, apply: true })).at(-1)?.at(-1)).toBe(false);
    expect((await gateway.steps.get({ organizationId, id })).costNanoUsd).toBe(3);
    expect(await settled()).toBe(3 + 7);
  });

  it("computes every kind of token at the tier that served it", async () => {
    const tiers = { priority: { input: 4, output: 8, cachedInput: 1 } };
    const { gateway, provider, chat, organizationId, reprice } = await spent();
    const usage = {
      promptTokens: 10,
      completionTokens: 5,
      cachedTokens: 4,
      serviceTier: "priority",
    };
    provider.reply({ text: "x", usage });
    await (await gateway.fetch(chat({ model: "test/a/one", service_tier: "priority" }))).text();
    const prices = { "test/a/one": { input: 1, output: 2, tiers } };
    expect((await reprice({ prices, apply: true }))[0]).toEqual([
      "test/a/one",
      10 * 1_000 + 5 * 2_000,
      6 * 4_000 + 4 * 1_000 + 5 * 8_000,
      68_000 - 20_000,
      true,
    ]);
    const { data } = await gateway.steps.list({ organizationId });
    expect(data[0]).toMatchObject({ costNanoUsd: 68_000, serviceTier: "priority" });
  });

  it("lets other work of the process run after each correction", async () => {
    const { gateway, organizationId } = await spent();
    const applied = { prices: newer, apply: true };
    const onePage = () => gateway.steps.reprice({ organizationId }, applied);
    const turns = await turnsWithChanges(gateway, onePage);
    const changes = await gateway.changes.list({ organizationId, kind: "correction" });
    expect([changes.data.length, turns]).toEqual([2, 2]);
  });

  it("at the same prices changes no cost, neither an estimated one nor that of nothing", async () => {
    const log = eventLog();
    const same: PriceTable = {
      "test/a/one": { input: 1, output: 2, cacheWrite: { "1h": 3 }, request: "0.005" },
    };
    const test = await createTestGateway({
      store: open(),
      models: {},
      prices: same,
      retries: { max: 0 },
      observers: log.observers,
    });
    const { gateway, provider, chat, key } = test;
    const error = new ProviderError("Down.", {
      reason: "down",
      delivery: "answered",
      status: 503,
    });
    provider.fail(error);
    await gateway.fetch(chat({ model: "test/a/one" }));
    provider.reply({ text: ["123", "456"] });
    provider.hold({ afterEvents: 2 });
    const left = await gateway.fetch(chat({ model: "test/a/one", stream: true }));
    const reader = left.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await log.seeing("step.settled", 2);
    const { organizationId } = key;
    const rows: RepricedAttempt[] = [];
    for await (const row of gateway.steps.reprice({ organizationId }, { prices: same }))
      rows.push(row);
    // 10 tokens written to the cache for an hour, at most, and one of output; then the failed call.
    expect(rows).toMatchObject([
      { costNanoUsd: 10 * 3_000 + 2_000 + 5_000_000, differenceNanoUsd: 0 },
      { costNanoUsd: 0, repricedNanoUsd: null, differenceNanoUsd: 0 },
    ]);
  });

  it("is refused for invalid prices and unknown filters, and then does nothing", async () => {
    const { gateway, organizationId, reprice } = await spent();
    const refused = { code: "invalid_argument" };
    const wrong: readonly PriceTable[] = [
      { "test/a/one": { input: 1 } },
      { "test/a/one": { input: -1, output: 1 } },
    ];
    for (const prices of wrong)
      await expect(reprice({ prices, apply: true })).rejects.toMatchObject(refused);
    const books: readonly Pick<PriceBook, "priceOf">[] = [
      { priceOf: () => ({ input: Number.NaN, output: 1, source: "catalog" }) },
      { priceOf: () => JSON.parse("no catalog") },
      // Async by mistake. An unhandled rejection would end the process, and this test run.
      { priceOf: () => Object(Promise.reject(new Error("no prices today"))) },
    ];
    for (const prices of books)
      await expect(reprice({ prices, apply: true })).rejects.toMatchObject({
        ...refused,
        param: "prices",
      });
    // @ts-expect-error prices are required
    await expect(reprice({ apply: true })).rejects.toMatchObject(refused);
    const applied = { prices: newer, apply: true };
    await expect(reprice({ ...applied, actor: "" })).rejects.toMatchObject(refused);
    await expect(
      gateway.steps.reprice({ organizationId, from: "x" }, applied),
    ).rejects.toMatchObject(refused);
    const { data } = await gateway.changes.list({ organizationId, kind: "correction" });
    expect(data).toEqual([]);
  });
});
