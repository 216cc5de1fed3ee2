import { createGateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, scriptedProvider, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { completionOf, failureOf } from "./wire.ts";

const down = new ProviderError("Down.", { reason: "down", delivery: "answered", status: 503 });
const prices = {
  "test/a/one": { input: 1, output: 1 },
  "spare/a/two": { input: 2, output: 2 },
  "spare/a/three": { input: 3, output: 3 },
  "spare/a/dear": { input: 9_999, output: 9_999 },
};

const falling = (...fallbacks: readonly `${string}/${string}`[]) =>
  definePolicy({
    rules: [permit("all", {}, { fallbacks }), forbid("forbidden", { model: "*/*/forbidden" })],
  });

function open(
  policy: ReturnType<typeof falling>,
  options: Parameters<typeof createTestGateway>[0] = {},
) {
  return createTestGateway({
    policy,
    prices,
    retries: { max: 0 },
    ...options,
  });
}

async function records({ gateway, key: { organizationId } }: TestGateway) {
  const { data: steps } = await gateway.steps.list({ organizationId });
  const { data: decisions } = await gateway.decisions.list({ organizationId });
  return { step: steps[0], decisions: decisions.toReversed() };
}

describe("fallbacks", () => {
  it("are tried in order, each with its own decision, price and record", async () => {
    const test = await open(falling("spare/a/two", "spare/a/three"));
    test.provider.fail(down, { times: 2 });
    const answer = await test.gateway.fetch(test.chat({ model: "test/a/one" }));
    expect((await completionOf(answer.clone())).model).toBe("test/a/one");
    const { step, decisions } = await records(test);
    expect(test.provider.calls.map(({ gateway, model }) => `${gateway}/${model}`)).toEqual([
      "test/a/one",
      "spare/a/two",
      "spare/a/three",
    ]);
    const [first, ...others] = decisions;
    expect(answer.headers.get("x-service-policy-decision-id")).toBe(first?.id);
    expect(first?.firstDecisionId).toBeNull();
    expect(others.map(({ firstDecisionId }) => firstDecisionId)).toEqual([first?.id, first?.id]);
    expect(step).toMatchObject({
      outcome: "completed",
      requestedModel: "test/a/one",
      model: "spare/a/three",
      decisionId: first?.id,
      costNanoUsd: 45_000,
      attempts: [
        { number: 1, model: "test/a/one", decisionId: first?.id, costNanoUsd: 0 },
        { number: 2, model: "spare/a/two", decisionId: others[0]?.id, costNanoUsd: 0 },
        { number: 3, model: "spare/a/three", decisionId: others[1]?.id, costNanoUsd: 45_000 },
      ],
    });
  });

  it("that are denied are recorded and skipped", async () => {
    const test = await open(falling("spare/a/forbidden", "spare/a/two"));
    test.provider.fail(down);
    expect((await test.gateway.fetch(test.chat({ model: "test/a/one" }))).status).toBe(200);
    const { step, decisions } = await records(test);
    expect(decisions.map(({ effect, facts }) => [facts.model, effect])).toEqual([
      ["one", "permit"],
      ["forbidden", "deny"],
      ["two", "permit"],
    ]);
    expect(step?.attempts.map(({ number, model }) => [number, model])).toEqual([
      [1, "test/a/one"],
      [2, "spare/a/two"],
    ]);
  });

  it("that no budget can afford, or that have no price, are recorded and skipped", async () => {
    const log = eventLog();
    const test = await open(falling("spare/a/dear", "spare/a/unknown", "spare/a/two"), {
      observers: log.observers,
      budgets: [{ id: "usd", limit: { usd: 1 }, period: "day" }],
    });
    test.provider.fail(down);
    expect((await test.gateway.fetch(test.chat({ model: "test/a/one" }))).status).toBe(200);
    const { decisions } = await records(test);
    expect(decisions.map(({ facts }) => facts.model)).toEqual(["one", "dear", "unknown", "two"]);
    expect(log.seen.filter(({ type }) => type === "budget.exhausted")).toHaveLength(1);
    expect((await test.gateway.budgets.status({ id: "usd" })).data).toMatchObject([
      { settled: 30_000, held: 0 },
    ]);
  });

  it("after a new period has begun hold its dollars, and don't count the request again", async () => {
    const test = await open(falling("spare/a/two"), {
      budgets: [
        { id: "requests", limit: { requests: 1 }, period: "hour" },
        { id: "usd", limit: { usd: 1 }, period: "hour" },
      ],
    });
    const { gateway, provider, clock, chat } = test;
    clock.setWall("2026-01-01T00:59:00Z");
    provider.reply({ delay: "90s", failure: { error: down } });
    const answer = clock.until(gateway.fetch(chat({ model: "test/a/one" })));
    expect((await answer).status).toBe(200);
    const settled = async (id: string, at: string) =>
      (await gateway.budgets.status({ id, at })).data.map(({ settled }) => settled);
    const [before, after] = ["2026-01-01T00:59:00Z", "2026-01-01T01:00:00Z"] as const;
    expect([await settled("requests", before), await settled("requests", after)]).toEqual([
      [1],
      [],
    ]);
    expect([await settled("usd", before), await settled("usd", after)]).toEqual([[0], [30_000]]);
    expect((await gateway.fetch(chat({ model: "test/a/one" }))).status).toBe(200);
  });

  it("of an unknown gateway are rejected at start, or skipped if a function names them", async () => {
    const options = { prices, retries: { max: 0 } };
    const unknown = { providers: { test: scriptedProvider().at("test") }, store: memoryStore() };
    // @ts-expect-error the compiler already rejects the unknown gateway
    expect(() => createGateway({ ...unknown, policy: falling("nowhere/a/b") })).toThrow(
      "`policy` falls back to nowhere/a/b, which no gateway has.",
    );
    const policy = definePolicy({
      version: "1",
      decide: () => ({
        effect: "permit",
        rules: ["all"],
        obligations: { fallbacks: ["nowhere/a/b", "nothing", "test/a/two"] },
      }),
    });
    const test = await createTestGateway({ ...options, policy });
    test.provider.fail(down);
    expect((await test.gateway.fetch(test.chat({ model: "test/a/one" }))).status).toBe(200);
    expect((await records(test)).step).toMatchObject({ model: "test/a/two" });
  });

  it("hold their own model's budgets, and release the holds of the failed one", async () => {
    const test = await open(falling("spare/a/two"), {
      budgets: [
        { id: "one", scope: { model: "test/a/one" }, limit: { requests: 9 }, period: "day" },
        { id: "spare", scope: { gateway: "spare" }, limit: { requests: 9 }, period: "day" },
        { id: "all", limit: { tokens: 10_000 }, period: "day" },
        { id: "once", limit: { requests: 1 }, period: "day" },
      ],
    });
    test.provider.fail(down);
    const hold = test.provider.hold({ afterEvents: 1 });
    const answering = test.gateway.fetch(test.chat({ model: "test/a/one", max_tokens: 10 }));
    await hold.reached();
    const status = async (id: string) => {
      const { data } = await test.gateway.budgets.status({ id });
      return data.map(({ settled, held }) => [settled, held]);
    };
    expect(await status("one")).toEqual([[1, 0]]);
    expect(await status("spare")).toEqual([[0, 1]]);
    expect(await status("all")).toEqual([[0, 20]]);
    expect(await status("once")).toEqual([[1, 0]]);
    hold.release();
    expect((await answering).status).toBe(200);
    expect([await status("one"), await status("spare"), await status("all")]).toEqual([
      [[1, 0]],
      [[1, 0]],
      [[15, 0]],
    ]);
  });

  it("are not tried if the request itself is at fault, and the last failure is returned", async () => {
    const test = await open(falling("spare/a/two"));
    const rejected = { reason: "status_400", delivery: "answered", status: 400 } as const;
    test.provider.fail(new ProviderError("No.", rejected));
    const one = test.chat({ model: "test/a/one" });
    expect(await failureOf(test.gateway.fetch(one.clone()))).toMatchObject({
      code: "upstream_rejected",
    });
    expect(test.provider.calls).toHaveLength(1);
    test.provider.fail(down, { times: 2 });
    const answer = await test.gateway.fetch(one);
    expect(answer.status).toBe(503);
    expect(test.provider.calls).toHaveLength(3);
  });

  it("are tried if a provider rejects the platform's credential", async () => {
    const test = await open(falling("spare/a/two"));
    const refused = { reason: "status_401", delivery: "answered", status: 401 } as const;
    test.provider.fail(new ProviderError("No.", refused));
    expect((await test.gateway.fetch(test.chat({ model: "test/a/one" }))).status).toBe(200);
  });

  it("follow their own obligations: a digest of the reply, and a cap", async () => {
    const policy = definePolicy({
      rules: [
        permit("first", { gateway: "test" }, { fallbacks: ["spare/a/two"], maxOutputTokens: 9 }),
        permit("spare", { gateway: "spare" }, { transcript: "digest", maxOutputTokens: 7 }),
      ],
    });
    const test = await createTestGateway({ policy, prices, retries: { max: 0 } });
    test.provider.fail(down);
    test.provider.reply("for nobody else");
    const answer = await completionOf(test.gateway.fetch(test.chat({ model: "test/a/one" })));
    expect(test.provider.calls.map(({ request }) => request.maxOutputTokens)).toEqual([9, 7]);
    const transcript = await test.gateway.sessions.transcript({
      organizationId: test.key.organizationId,
      id: answer.session_id,
    });
    expect(transcript.map(({ kind, count, messages }) => [kind, count, messages])).toMatchObject([
      ["request", 1, [{ role: "user" }]],
      ["reply", 1, null],
    ]);
  });

  it("are retried as often as the first model", async () => {
    const test = await open(falling("spare/a/two"), { retries: { max: 1 } });
    test.provider.fail(down, { times: 3 });
    const answering = test.gateway.fetch(test.chat({ model: "test/a/one" }));
    expect((await test.clock.until(answering)).status).toBe(200);
    expect(test.provider.calls.map(({ model }) => model)).toEqual([
      "a/one",
      "a/one",
      "a/two",
      "a/two",
    ]);
  });

  it("to a customer-owned gateway without the organization's key are recorded and skipped", async () => {
    const elsewhere = scriptedProvider();
    const test = await open(falling("own/a/b", "spare/a/two"), {
      providers: { own: { ...elsewhere.at("own"), connection: "customer" } },
    });
    test.provider.fail(down);
    expect((await test.gateway.fetch(test.chat({ model: "test/a/one" }))).status).toBe(200);
    expect(elsewhere.calls).toEqual([]);
    const { decisions } = await records(test);
    expect(decisions.map(({ facts }) => facts.gateway)).toEqual(["test", "own", "spare"]);
  });
});
