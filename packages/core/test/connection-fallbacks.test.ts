import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { countingIds, expectBudget, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { type OwnGateways, openOwnGateways } from "./own-gateways.ts";
import { stores } from "./stores.ts";
import { failureOf } from "./wire.ts";

const acme = { organizationId: "organization-1", gateway: "own" };
const platform = "test/tollgate/scripted";
const down = new ProviderError("Down.", { reason: "down", delivery: "answered", status: 503 });
const usage = { promptTokens: 10, completionTokens: 5 };

const falling = (from: string, ...fallbacks: readonly `${string}/${string}`[]) =>
  definePolicy({
    rules: [permit("all"), permit("falling", { gateway: from }, { fallbacks })],
  });

/** Budgets of requests, tokens and dollars that count each kind of connection separately, and all together. */
const budgets: TestGatewayOptions["budgets"] = [
  { id: "byok", scope: { connection: "customer" }, limit: { usd: 1 }, period: "day" },
  { id: "byok-requests", scope: { connection: "customer" }, limit: { requests: 9 }, period: "day" },
  { id: "platform", scope: { connection: "platform" }, limit: { usd: 1 }, period: "day" },
  { id: "all", limit: { usd: 2 }, period: "day" },
];

async function billingOf({ gateway }: OwnGateways) {
  const [step] = (await gateway.steps.list({ organizationId: acme.organizationId })).data;
  const [record] = (await gateway.activity.list({ organizationId: acme.organizationId })).data;
  return {
    step: step?.billedTo,
    record: record?.billedTo,
    attempts: step?.attempts.map(({ connection, billedTo, costNanoUsd }) => [
      connection,
      billedTo,
      costNanoUsd,
    ]),
  };
}

describe.each(stores)("customer-owned traffic, on %s", (_, open) => {
  it("is billed to the customer and counts on BYOK budgets only", async () => {
    const test = await openOwnGateways({ store: open(), budgets });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    test.upstream.reply({ text: "OK", usage });
    test.provider.reply({ text: "OK", usage });
    await test.gateway.fetch(test.chat({ model: "own/a/b" }));
    expect(await billingOf(test)).toEqual({
      step: "customer",
      record: "customer",
      attempts: [["customer", "customer", 20_000]],
    });
    await expectBudget(test.gateway, "byok", { settled: 20_000, held: 0 });
    await expectBudget(test.gateway, "byok-requests", { settled: 1, held: 0 });
    await test.clock.advance("1s");
    await test.gateway.fetch(test.chat({ model: platform }));
    expect(await billingOf(test)).toEqual({
      step: "platform",
      record: "platform",
      attempts: [["platform", "platform", 20_000]],
    });
    await expectBudget(test.gateway, "byok", { settled: 20_000, held: 0 });
    await expectBudget(test.gateway, "byok-requests", { settled: 1, held: 0 });
    await expectBudget(test.gateway, "platform", { settled: 20_000, held: 0 });
    await expectBudget(test.gateway, "all", { settled: 40_000, held: 0 });
    const { data } = await test.gateway.steps.list({
      organizationId: acme.organizationId,
      connection: "customer",
    });
    expect(data.map(({ model }) => model)).toEqual(["own/a/b"]);
  });

  it("after a fallback from the platform counts from there on, and is billed to the customer", async () => {
    const policy = falling("test", "own/a/b");
    const test = await openOwnGateways({ store: open(), budgets, policy });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    test.provider.fail(down);
    test.upstream.reply({ text: "OK", usage });
    expect((await test.gateway.fetch(test.chat({ model: platform }))).status).toBe(200);
    expect(test.credentials()).toEqual(["own sk-1"]);
    expect(test.provider.calls.map(({ credential }) => credential)).toEqual([null]);
    expect(await billingOf(test)).toEqual({
      step: "customer",
      record: "customer",
      attempts: [
        ["platform", "platform", 0],
        ["customer", "customer", 20_000],
      ],
    });
    await expectBudget(test.gateway, "byok", { settled: 20_000, held: 0 });
    await expectBudget(test.gateway, "byok-requests", { settled: 1, held: 0 });
    await expectBudget(test.gateway, "platform", { settled: 0, held: 0 });
    await expectBudget(test.gateway, "all", { settled: 20_000, held: 0 });
  });

  it("falls back to the platform if its gateway fails, and each pays for its own attempt", async () => {
    const policy = falling("own", platform);
    const test = await openOwnGateways({ store: open(), budgets, policy });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    test.upstream.fail(down);
    test.provider.reply({ text: "OK", usage });
    expect((await test.gateway.fetch(test.chat({ model: "own/a/b" }))).status).toBe(200);
    expect((await billingOf(test)).attempts).toEqual([
      ["customer", "customer", 0],
      ["platform", "platform", 20_000],
    ]);
    await expectBudget(test.gateway, "byok", { settled: 0, held: 0 });
    await expectBudget(test.gateway, "byok-requests", { settled: 1, held: 0 });
    await expectBudget(test.gateway, "platform", { settled: 20_000, held: 0 });
  });

  it("is rejected over a BYOK budget's limit, while the platform's continues", async () => {
    const byok = {
      scope: { connection: "customer" },
      limit: { requests: 1 },
      period: "day",
    } as const;
    const test = await openOwnGateways({ store: open(), budgets: [{ id: "one", ...byok }] });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    const ask = async (model: string) => (await test.gateway.fetch(test.chat({ model }))).status;
    expect([await ask("own/a/b"), await ask("own/a/b"), await ask(platform)]).toEqual([
      200, 429, 200,
    ]);
  });
});

describe("further attempts", () => {
  it("skip fallbacks to customer-owned gateways without the organization's key", async () => {
    const policy = falling("test", "spare/a/b", "own/a/b");
    const test = await openOwnGateways({ policy });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    test.provider.fail(down);
    expect((await test.gateway.fetch(test.chat({ model: platform }))).status).toBe(200);
    expect(test.credentials()).toEqual(["own sk-1"]);
    const { data } = await test.gateway.decisions.list({ organizationId: acme.organizationId });
    expect(data.map(({ facts }) => facts.gateway).toSorted()).toEqual(["own", "spare", "test"]);
    expect((await billingOf(test)).attempts).toEqual([
      ["platform", "platform", 0],
      ["customer", "customer", 20_000],
    ]);
  });

  it("are tried if the credential can't be decrypted", async () => {
    const secrets = { current: "k2", keys: { k2: Buffer.alloc(32, 2).toString("base64") } };
    const policy = falling("own", platform);
    const before = await openOwnGateways({ policy });
    await before.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    const { store, clock } = before;
    const after = await openOwnGateways({ store, clock, policy, secrets, ids: countingIds(1) });
    expect((await after.gateway.fetch(before.chat({ model: "own/a/b" }))).status).toBe(200);
    expect(after.upstream.calls).toEqual([]);
    expect(after.provider.calls).toHaveLength(1);
  });

  it("follow a policy that requires the organization's own account", async () => {
    const policy = definePolicy({
      rules: [permit("own", {}, { connection: "customer", fallbacks: [platform, "spare/a/b"] })],
    });
    const test = await openOwnGateways({ policy });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    await test.gateway.connections.set({ ...acme, gateway: "spare", apiKey: "sk-2" });
    const refused = await test.gateway.fetch(test.chat({ model: platform }));
    expect(refused.headers.get("x-service-policy-decision-id")).not.toBeNull();
    expect(await failureOf(refused)).toMatchObject({ code: "connection_required" });
    test.upstream.fail(down, { when: ({ gateway }) => gateway === "own" });
    expect((await test.gateway.fetch(test.chat({ model: "own/a/b" }))).status).toBe(200);
    expect(test.credentials()).toEqual(["own sk-1", "spare sk-2"]);
    expect(test.provider.calls).toEqual([]);
  });

  it("use the current credential, whichever process set it", async () => {
    const test = await openOwnGateways({ retries: { max: 1 } });
    const { store, clock } = test;
    const other = await openOwnGateways({ store, clock, ids: countingIds(1) });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    test.upstream.reply(async () => {
      await other.gateway.connections.set({ ...acme, apiKey: "sk-2" });
      throw down;
    });
    const answering = test.gateway.fetch(test.chat({ model: "own/a/b" }));
    expect((await test.clock.until(answering)).status).toBe(200);
    expect(test.credentials()).toEqual(["own sk-1", "own sk-2"]);
  });

  it("fail if the credential was removed, and so does the next request", async () => {
    const test = await openOwnGateways({ retries: { max: 1 } });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    test.upstream.reply(async () => {
      await test.gateway.connections.remove(acme);
      throw down;
    });
    const answering = test.gateway.fetch(test.chat({ model: "own/a/b" }));
    const answer = await test.clock.until(answering);
    expect(answer.status).toBe(503);
    expect(await failureOf(answer)).toMatchObject({ code: "connection_unavailable" });
    expect((await test.gateway.fetch(test.chat({ model: "own/a/b" }))).status).toBe(400);
    expect(test.credentials()).toEqual(["own sk-1"]);
  });
});
