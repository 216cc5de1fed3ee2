import { everyOrganization } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { createTestGateway, faultyStore, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { endpoints } from "./endpoints.ts";
import { stores } from "./stores.ts";
import { failureOf } from "./wire.ts";

async function statusesOf(
  test: TestGateway,
  count: number,
  body: Parameters<TestGateway["chat"]>[0] = {},
) {
  const statuses: number[] = [];
  for (let at = 0; at < count; at++) {
    const answer = await test.gateway.fetch(test.chat(body));
    await answer.text();
    statuses.push(answer.status);
  }
  return statuses;
}

// "Hello" is estimated at 10 tokens of input; with a cap of 10 a request may use 20 tokens, and uses 15.
const capped = { max_completion_tokens: 10 };

describe.each(stores)("a rate limit on %s", (_, open) => {
  it("allows its burst at once and then one request per interval", async () => {
    const rateLimits = [{ id: "rpm", limit: { requests: 60 }, per: "minute", burst: 2 }] as const;
    const test = await createTestGateway({ store: open(), rateLimits });
    expect(await statusesOf(test, 3)).toEqual([200, 200, 429]);
    await test.clock.advance(999);
    expect(await statusesOf(test, 1)).toEqual([429]);
    await test.clock.advance(1);
    expect(await statusesOf(test, 2)).toEqual([200, 429]);
  });

  it("counts all spellings of a model together, where each model has a limit", async () => {
    const limit = { requests: 2 } as const;
    const scope = { each: "model" } as const;
    const rateLimits = [{ id: "each", limit, per: "hour", burst: 2, scope }] as const;
    const test = await createTestGateway({ store: open(), rateLimits });
    const spelled = async (model: string) => (await statusesOf(test, 1, { model }))[0];
    expect(await spelled("test/tollgate/other")).toBe(200);
    expect(await spelled("test/tollgate/Other")).toBe(200);
    expect(await spelled("test/Tollgate/OTHER")).toBe(429);
    expect(await spelled("test/tollgate/scripted")).toBe(200);
  });

  it("allows a request that its store delayed, as of when it opens", async () => {
    const rateLimits = [{ id: "rpm", limit: { requests: 60 }, per: "minute", burst: 2 }] as const;
    const on = { verb: "openStep", nth: 1, when: "before", action: "wait" } as const;
    const { store, fault } = faultyStore(open(), { on });
    const test = await createTestGateway({ store, rateLimits });
    const start = test.clock.now();
    const delayed = test.gateway.fetch(test.chat());
    await fault.reached();
    await test.clock.advance("10s");
    expect(await statusesOf(test, 1)).toEqual([200]);
    fault.release();
    expect((await delayed).status).toBe(200);
    const refused = await test.gateway.fetch(test.chat());
    expect([refused.status, refused.headers.get("retry-after-ms")]).toEqual([429, "1000"]);
    await (await delayed).text();
    const { data } = await test.store.steps.list(
      { organizationId: "organization-1" },
      { cursor: null, limit: 10 },
    );
    expect(data.map(({ openedAt }) => openedAt - start)).toEqual([10_000, 10_000]);
  });

  it.each(endpoints)(
    "says when to try again, in the headers that SDKs read: $name",
    async (endpoint) => {
      const rateLimits = [{ id: "rpm", limit: { requests: 6 }, per: "minute" }] as const;
      const test = await createTestGateway({ store: open(), rateLimits });
      const ask = (fields: object = {}) =>
        test.gateway.fetch(endpoint.request(test.key.secret, fields));
      const first = await ask();
      await first.text();
      expect(Object.fromEntries(first.headers)).toMatchObject({
        "x-ratelimit-limit-requests": "6",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "10s",
      });
      await test.clock.advance(2_500);
      const refused = await ask(endpoint.streamed);
      expect(refused.status).toBe(429);
      expect(Object.fromEntries(refused.headers)).toMatchObject({
        "retry-after": "8",
        "retry-after-ms": "7500",
        "x-ratelimit-limit-requests": "6",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "7.5s",
      });
      await endpoint.expectFailure(refused, {
        code: "rate_limit_exceeded",
        messagesType: "rate_limit_error",
        message: /^The rate limit rpm is reached\. Try again in 7\.5s\.$/,
      });
    },
  );

  it("reserves tokens by the estimate and corrects them by the usage", async () => {
    const rateLimits = [{ id: "tpm", limit: { tokens: 60 }, per: "minute", burst: 40 }] as const;
    const test = await createTestGateway({ store: open(), rateLimits });
    expect(await statusesOf(test, 2, capped)).toEqual([200, 200]);
    const third = await test.gateway.fetch(test.chat(capped));
    expect(third.status).toBe(429);
    // 30 of 40 tokens are used up, and 20 may be needed: 10 seconds.
    expect(third.headers.get("retry-after-ms")).toBe("10000");
    expect(third.headers.get("x-ratelimit-remaining-tokens")).toBe("10");
    await test.clock.advance(10_000);
    expect(await statusesOf(test, 1, capped)).toEqual([200]);
  });

  it("allows a request larger than its burst once nothing is used up", async () => {
    const rateLimits = [{ id: "tpm", limit: { tokens: 60 }, per: "minute", burst: 1 }] as const;
    const test = await createTestGateway({ store: open(), rateLimits });
    expect(await statusesOf(test, 2, capped)).toEqual([200, 429]);
    await test.clock.advance(15_000);
    expect(await statusesOf(test, 1, capped)).toEqual([200]);
    const huge = await test.gateway.fetch(test.chat({ max_completion_tokens: 51 }));
    expect(huge.headers.get("retry-after")).toBeNull();
    expect((await failureOf(huge)).message).toMatch(/allows 60 tokens per minute/);
  });

  it("says when a rate limit that is used beyond its burst has room again", async () => {
    const rateLimits = [{ id: "tpm", limit: { tokens: 60 }, per: "minute", burst: 1 }] as const;
    const test = await createTestGateway({ store: open(), rateLimits });
    expect(await statusesOf(test, 1, capped)).toEqual([200]);
    const refused = await test.gateway.fetch(test.chat({ max_completion_tokens: 1 }));
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      "retry-after-ms": "15000",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "15s",
    });
    const { data } = await test.gateway.decisions.list({
      organizationId: everyOrganization,
      refusal: "rate_limit",
    });
    expect(data[0]?.refusal).toMatchObject({ needed: 11, left: 0 });
  });

  it("says when to retry a request above the limit that fits into the burst", async () => {
    const rateLimits = [{ id: "tpm", limit: { tokens: 10 }, per: "minute", burst: 30 }] as const;
    const test = await createTestGateway({ store: open(), rateLimits });
    expect(await statusesOf(test, 1, capped)).toEqual([200]);
    const refused = await test.gateway.fetch(test.chat(capped));
    // 15 of 30 tokens are left, and 20 may be needed: 5 tokens, 6 seconds each.
    expect(refused.headers.get("retry-after-ms")).toBe("30000");
    expect(await statusesOf(test, 1, { max_completion_tokens: 40 })).toEqual([429]);
  });

  it("counts tokens exactly when they do not fit evenly into their period", async () => {
    const rateLimits = [{ id: "tpm", limit: { tokens: 450_000 }, per: "minute" }] as const;
    const limits = { maxOutputTokens: 500_000 };
    const test = await createTestGateway({ store: open(), rateLimits, limits });
    const first = await test.gateway.fetch(test.chat(capped));
    await first.text();
    expect(first.headers.get("x-ratelimit-remaining-tokens")).toBe("44979");
    const huge = await test.gateway.fetch(test.chat({ max_completion_tokens: 449_991 }));
    expect(huge.headers.get("retry-after")).toBeNull();
    const { data } = await test.gateway.decisions.list({
      organizationId: everyOrganization,
      refusal: "rate_limit",
    });
    expect(data[0]?.refusal).toMatchObject({ needed: 450_001 });
  });

  it("counts fewer tokens when a budget lowers the output cap", async () => {
    const test = await createTestGateway({
      store: open(),
      limits: { maxOutputTokens: 10 },
      models: { "tollgate/scripted": { input: 1, output: 2, maxOutputTokens: 100_000 } },
      rateLimits: [{ id: "tpm", limit: { tokens: 600_000 }, per: "minute" }],
      budgets: [{ id: "few", limit: { tokens: 30 }, period: "day" }],
    });
    expect(await statusesOf(test, 1)).toEqual([200]);
    const { data } = await test.gateway.rateLimits.status({ id: "tpm" });
    expect(data).toMatchObject([{ remaining: 59_985 }]);
  });

  it("limits how many Steps are in flight at once", async () => {
    const rateLimits = [{ id: "few", limit: { concurrentSteps: 2 } }] as const;
    const test = await createTestGateway({ store: open(), rateLimits });
    const hold = test.provider.hold();
    const running = [1, 2].map(() => test.gateway.fetch(test.chat()));
    await hold.reached(2);
    const refused = await test.gateway.fetch(test.chat());
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect((await test.gateway.rateLimits.status({ id: "few" })).data).toMatchObject([
      { limit: 2, remaining: 0 },
    ]);
    hold.release();
    for (const answer of running) expect((await answer).status).toBe(200);
    expect(await statusesOf(test, 1)).toEqual([200]);
  });

  it("counts a refused request in none of the rate limits", async () => {
    const rateLimits = [
      { id: "rps", limit: { requests: 3 }, per: "second", burst: 3 },
      { id: "rpd", limit: { requests: 1 }, per: "day" },
    ] as const;
    const test = await createTestGateway({ store: open(), rateLimits });
    expect(await statusesOf(test, 5)).toEqual([200, 429, 429, 429, 429]);
    const { data } = await test.gateway.decisions.list({
      organizationId: everyOrganization,
      refusal: "rate_limit",
    });
    expect(data).toHaveLength(4);
    expect(data[0]?.refusal).toEqual({
      by: "rate_limit",
      rateLimitId: "rpd",
      subject: "",
      unit: "requests",
      needed: 1,
      left: 0,
    });
    expect(test.provider.calls).toHaveLength(1);
  });

  it("comes after the policy and before budgets", async () => {
    const test = await createTestGateway({
      store: open(),
      rateLimits: [{ id: "none", limit: { requests: 0 }, per: "minute" }],
      budgets: [{ id: "empty", limit: { requests: 0 }, period: "day" }],
      policy: definePolicy({
        rules: [forbid("no tools", { tools: true }), permit("all", {})],
      }),
    });
    const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
    const denied = await test.gateway.fetch(test.chat({ tools: [tool] }));
    expect(denied.status).toBe(403);
    const limited = await test.gateway.fetch(test.chat());
    expect((await failureOf(limited)).code).toBe("rate_limit_exceeded");
  });

  it("with `each`, counts every key separately", async () => {
    const rateLimits = [
      { id: "rpm", scope: { each: "key" }, limit: { requests: 10 }, per: "minute" },
    ] as const;
    const test = await createTestGateway({ store: open(), rateLimits });
    expect(await statusesOf(test, 2)).toEqual([200, 429]);
    const owner = { organizationId: "acme", userId: "bob" };
    const { secret } = await test.gateway.keys.create({ ...owner, label: "other" });
    const other = test.chat();
    other.headers.set("authorization", `Bearer ${secret}`);
    expect((await test.gateway.fetch(other)).status).toBe(200);
  });

  it("rejects an update to other organizations, because its counters name its users", async () => {
    const { gateway } = await createTestGateway({ store: open() });
    const { rateLimits } = gateway;
    const rpm = { id: "rpm", limit: { requests: 60 }, per: "minute" } as const;
    const scope = { organization: "acme" };
    const before = await rateLimits.create({ ...rpm, scope });
    for (const organization of ["globex", ["acme", "globex"]])
      await expect(rateLimits.update({ ...rpm, scope: { organization } })).rejects.toMatchObject({
        code: "invalid_argument",
        param: "scope.organization",
      });
    await expect(rateLimits.update(rpm)).rejects.toMatchObject({ param: "scope.organization" });
    expect(await rateLimits.get({ id: "rpm" })).toEqual(before);
    const narrower = { organization: ["acme"], user: "ada" };
    expect(await rateLimits.update({ ...rpm, scope: narrower })).toMatchObject({ scope: narrower });
  });

  it("is created, shown, replaced and removed while the gateway runs", async () => {
    const test = await createTestGateway({ store: open() });
    const { rateLimits, changes } = test.gateway;
    const rpm = {
      id: "rpm",
      scope: { each: "key" },
      limit: { requests: 60 },
      per: "minute",
    } as const;
    const created = await rateLimits.create({ ...rpm, burst: 1, actor: "ops" });
    expect(created).toMatchObject({ unit: "requests", limit: 60, burst: 1, origin: "created" });
    expect(await statusesOf(test, 2)).toEqual([200, 429]);
    const { data } = await rateLimits.status({ id: "rpm" });
    const counter = { rateLimitId: "rpm", limit: 60, burst: 1, remaining: 0, resetMs: 1_000 };
    expect(data).toMatchObject([counter]);
    const { per: _, ...concurrent } = { ...rpm, limit: { concurrentSteps: 1 } } as const;
    await rateLimits.update(concurrent);
    expect(await statusesOf(test, 2)).toEqual([200, 200]);
    expect((await rateLimits.list()).data).toMatchObject([{ id: "rpm", unit: "steps" }]);
    await rateLimits.update({ ...rpm, limit: { requests: 0 } });
    expect((await rateLimits.status({ id: "rpm" })).data).toMatchObject([{ remaining: 0 }]);
    await rateLimits.remove({ id: "rpm" });
    await expect(rateLimits.get({ id: "rpm" })).rejects.toMatchObject({
      code: "rate_limit_not_found",
    });
    const { data: kinds } = await changes.list({ organizationId: everyOrganization });
    expect(kinds.flatMap(({ kind, subject }) => (subject === "rpm" ? kind : []))).toEqual([
      "rate_limit.removed",
      "rate_limit.updated",
      "rate_limit.updated",
      "rate_limit.created",
    ]);
  });

  it.each([
    [{ limit: { requests: 1 } }, "per"],
    [{ limit: { tokens: 1 }, per: "week" }, "per"],
    [{ limit: { requests: 1.5 }, per: "day" }, "limit"],
    [{ limit: { concurrentSteps: 1 }, per: "day" }, "limit"],
    [{ limit: { requests: 1 }, per: "day", burst: 0 }, "burst"],
    [{ limit: { requests: 1 }, per: "day", scope: { gateway: "none" } }, "scope.gateway"],
  ])("rejects %j, naming %s", async (written, param) => {
    const { gateway } = await createTestGateway({ store: open() });
    const creating = gateway.rateLimits.create({ id: "bad", ...written } as never);
    await expect(creating).rejects.toMatchObject({ code: "invalid_argument", param });
  });

  it("rejects the id of a budget", async () => {
    const budgets = [{ id: "one", limit: { requests: 1 }, period: "day" }] as const;
    const rateLimits = [{ id: "one", limit: { concurrentSteps: 1 } }] as const;
    await expect(createTestGateway({ store: open(), budgets, rateLimits })).rejects.toThrow(
      /rateLimits\[0\]\.id/,
    );
    const { gateway } = await createTestGateway({ store: open(), budgets });
    await expect(gateway.rateLimits.create({ ...rateLimits[0] })).rejects.toMatchObject({
      param: "id",
    });
  });
});
