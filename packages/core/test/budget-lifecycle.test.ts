import { type BudgetConfiguration, everyOrganization } from "@tollgate/core";
import { etagOf } from "@tollgate/core/administration";
import { countingIds, createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";
import { completionOf } from "./wire.ts";

const two = { id: "b", limit: { requests: 2 }, period: "hour" } as const;

const statuses = async ({ gateway, chat }: TestGateway, count: number) => {
  const seen: number[] = [];
  for (let at = 0; at < count; at++) seen.push((await gateway.fetch(chat())).status);
  return seen;
};

describe.each(stores)("a budget at run time on %s", (_, open) => {
  it("keeps its settled and held amounts when it is updated while requests run", async () => {
    const test = await createTestGateway({ store: open() });
    const { gateway, provider, chat, clock } = test;
    await gateway.budgets.create({ ...two, limit: { requests: 4 } });
    await completionOf(gateway.fetch(chat()));
    const hold = provider.hold();
    const running = gateway.fetch(chat());
    await hold.reached();
    await gateway.budgets.update(two);
    const standing = { settled: 1, held: 1, limit: 2, remaining: 0 };
    const hour = { periodStart: "2026-01-01T00:00:00.000Z", resetsAt: "2026-01-01T01:00:00.000Z" };
    expect((await gateway.budgets.status({ id: "b" })).data).toMatchObject([
      { ...standing, ...hour },
    ]);
    expect((await gateway.fetch(chat())).status).toBe(429);
    await gateway.budgets.update({ ...two, limit: { requests: 1 } });
    expect((await gateway.budgets.status({ id: "b" })).data).toMatchObject([{ remaining: -1 }]);
    await gateway.budgets.update({ ...two, limit: { requests: 3 } });
    const third = gateway.fetch(chat());
    await hold.reached(2);
    hold.release();
    expect([(await running).status, (await third).status]).toEqual([200, 200]);
    await clock.advance("1h");
    expect((await gateway.budgets.status({ id: "b" })).data).toEqual([]);
    const at = "2026-01-01T00:59:00Z";
    expect((await gateway.budgets.status({ id: "b", at })).data).toMatchObject([
      { ...hour, settled: 3, held: 0 },
    ]);
  });

  it("stops when it is removed under a running request, and continues when it is created again", async () => {
    const test = await createTestGateway({ store: open() });
    const { gateway, provider, chat } = test;
    await gateway.budgets.create(two);
    const hold = provider.hold();
    const running = [gateway.fetch(chat()), gateway.fetch(chat())];
    await hold.reached(2);
    await gateway.budgets.remove({ id: "b", actor: "ops" });
    const free = gateway.fetch(chat());
    await hold.reached(3);
    hold.release();
    for (const answer of [...running, free]) expect((await answer).status).toBe(200);
    await expect(gateway.budgets.status({ id: "b" })).rejects.toMatchObject({
      code: "budget_not_found",
    });
    await gateway.budgets.create(two);
    expect((await gateway.budgets.status({ id: "b" })).data).toMatchObject([{ settled: 2 }]);
    expect((await gateway.fetch(chat())).status).toBe(429);
    await gateway.budgets.remove({ id: "b" });
    await expect(gateway.budgets.create({ ...two, limit: { tokens: 5 } })).rejects.toMatchObject({
      code: "invalid_argument",
      param: "id",
    });
  });

  it("is rejected with the id of a declared rate limit, and requests continue", async () => {
    const rateLimits = [{ id: "b", limit: { concurrentSteps: 9 } }];
    const { gateway, chat } = await createTestGateway({ store: open(), rateLimits });
    await expect(gateway.budgets.create(two)).rejects.toMatchObject({
      code: "budget_exists",
      param: "id",
    });
    expect((await gateway.fetch(chat())).status).toBe(200);
    expect((await gateway.budgets.list()).data).toEqual([]);
  });

  it("can be changed and removed by one of many concurrent callers, and the others learn that it is gone", async () => {
    const test = await createTestGateway({ store: open() });
    const { gateway } = test;
    await gateway.budgets.create(two);
    const outcomes = await Promise.allSettled([
      gateway.budgets.remove({ id: "b" }),
      gateway.budgets.remove({ id: "b" }),
      gateway.budgets.update({ ...two, limit: { requests: 9 } }),
    ]);
    const gone = { status: "rejected", reason: { code: "budget_not_found" } };
    expect(outcomes).toMatchObject([{ status: "fulfilled" }, gone, gone]);
  });

  it("is either declared or created, follows the newest configuration, and stops when no longer declared", async () => {
    const store = open();
    const first = await createTestGateway({ store, budgets: [two] });
    await expect(first.gateway.budgets.create(two)).rejects.toMatchObject({ param: "id" });
    for (const change of [
      () => first.gateway.budgets.update(two),
      () => first.gateway.budgets.remove({ id: "b" }),
    ])
      await expect(change()).rejects.toMatchObject({ code: "invalid_argument", param: "id" });
    expect(await statuses(first, 3)).toEqual([200, 200, 429]);
    const options = { store, clock: first.clock };
    const lower = [{ ...two, limit: { requests: 3 } }];
    const second = await createTestGateway({ ...options, ids: countingIds(1), budgets: lower });
    expect(await statuses(second, 2)).toEqual([200, 429]);
    const third = await createTestGateway({ ...options, ids: countingIds(2) });
    expect(await statuses(third, 1)).toEqual([200]);
    const again = await createTestGateway({ ...options, ids: countingIds(3), budgets: [two] });
    expect((await again.gateway.budgets.status({ id: "b" })).data).toMatchObject([{ settled: 3 }]);
  });

  it("can change neither its period nor its unit", async () => {
    const { gateway } = await createTestGateway({ store: open() });
    await gateway.budgets.create(two);
    for (const other of [{ period: "day" }, { limit: { tokens: 2 } }] as const)
      await expect(gateway.budgets.update({ ...two, ...other })).rejects.toMatchObject({
        code: "invalid_argument",
        param: "period",
      });
    expect(await gateway.budgets.get({ id: "b" })).toMatchObject({ period: "hour", limit: 2 });
  });

  it("rejects an update to other organizations, because its counters name its users", async () => {
    const { gateway } = await createTestGateway({ store: open() });
    const { budgets } = gateway;
    const both = ["acme", "globex"];
    for (const [organization, others] of [
      [undefined, ["acme", both]],
      ["acme", ["globex", both, undefined]],
      [both, ["acme", [...both, "initech"], undefined]],
    ] as const) {
      const of = (named: string | readonly string[] | undefined) => ({
        ...two,
        scope: { each: "user" as const, ...(named === undefined ? {} : { organization: named }) },
      });
      const before = await budgets.create(of(organization));
      for (const other of others)
        await expect(
          budgets.update({ ...of(other), limit: { requests: 9 } }),
        ).rejects.toMatchObject({ code: "invalid_argument", param: "scope.organization" });
      expect(await budgets.get({ id: "b" })).toEqual(before);
      const scope = { ...of(organization).scope, user: "ada" };
      expect(await budgets.update({ ...two, scope })).toMatchObject({ scope });
      await budgets.remove({ id: "b" });
    }
    await budgets.create({ ...two, scope: { organization: both } });
    const same = { organization: ["globex", "acme", "globex"] };
    expect(await budgets.update({ ...two, scope: same })).toMatchObject({ scope: same });
  });

  it("and its raises report each change to observers, and record it", async () => {
    const seen: string[] = [];
    const observer = (event: { readonly type: string; readonly kind?: string }) => {
      if (event.kind?.startsWith("budget.")) seen.push(event.kind);
    };
    const { gateway } = await createTestGateway({ store: open(), observers: [observer] });
    const { budgets } = gateway;
    const budget = { ...two, scope: { organization: "acme" } };
    await budgets.create(budget);
    await budgets.update({ ...budget, limit: { requests: 3 } });
    const until = "2026-02-01T00:00:00Z";
    const { id } = await budgets.raise({ id: "b", by: { requests: 5 }, until });
    await budgets.cancelRaise({ id: "b", raiseId: id });
    await budgets.remove({ id: "b" });
    const kinds = ["created", "updated", "raised", "raise_cancelled", "removed"];
    expect(seen).toEqual(kinds.map((kind) => `budget.${kind}`));
    const { data } = await gateway.changes.list({ organizationId: "acme" });
    expect(data.map(({ kind }) => kind).toReversed()).toEqual(seen);
    const raise = { id, amount: 5, at: Date.UTC(2026, 0, 1), until: Date.UTC(2026, 1, 1) };
    const raises = data.map(({ facts }) => facts["raise"]).toReversed();
    expect(raises).toEqual([undefined, undefined, raise, raise, undefined]);
  });

  it("is in an organization's changes only if its scope names no other organization", async () => {
    const { gateway } = await createTestGateway({ store: open() });
    const scopes = ["acme", ["acme"], ["acme", "acme"], ["acme", "globex"]];
    for (const [at, organization] of scopes.entries())
      await gateway.budgets.create({ ...two, id: `b${at}`, scope: { organization } });
    const { data } = await gateway.changes.list({ organizationId: "acme" });
    expect(data.map(({ subject }) => subject)).toEqual(["b2", "b1", "b0"]);
    const all = await gateway.changes.list({
      organizationId: everyOrganization,
      kind: "budget.created",
    });
    expect(all.data.map(({ organizationId }) => organizationId)).toEqual([
      null,
      "acme",
      "acme",
      "acme",
    ]);
  });

  it("is created only under an id that nothing was counted under, if asked to", async () => {
    const test = await createTestGateway({ store: open() });
    const { budgets, rateLimits } = test.gateway;
    await budgets.create({ ...two, unused: true });
    expect(await statuses(test, 1)).toEqual([200]);
    await budgets.remove({ id: "b" });
    const used = { code: "invalid_argument", param: "id" };
    await expect(budgets.create({ ...two, unused: true })).rejects.toMatchObject(used);
    const rate = { id: "b", limit: { concurrentSteps: 1 }, unused: true };
    await expect(rateLimits.create(rate)).rejects.toMatchObject(used);
    expect(await budgets.create(two)).toMatchObject({ id: "b", limit: 2 });
  });
});

describe.each(stores)("a raise on %s", (_, open) => {
  it.each(["declared", "created"])(
    "lifts the limit of a %s budget in every process until it ends",
    async (origin) => {
      const store = open();
      const options = origin === "declared" ? { store, budgets: [two] } : { store };
      const here = await createTestGateway(options);
      const { clock, gateway } = here;
      if (origin === "created") await gateway.budgets.create(two);
      const there = await createTestGateway({ ...options, clock, ids: countingIds(1) });
      expect(await statuses(there, 3)).toEqual([200, 200, 429]);
      const until = "2026-01-01T00:20:00.000Z";
      const by = { requests: 1 };
      const raise = await gateway.budgets.raise({ id: "b", by, until, actor: "ops" });
      expect(raise).toMatchObject({
        budgetId: "b",
        unit: "requests",
        amount: 1,
        until,
        actor: "ops",
      });
      await gateway.budgets.raise({ id: "b", by, until: "2026-01-01T00:40:00.000Z" });
      expect(await statuses(there, 2)).toEqual([200, 200]);
      expect(await statuses(here, 1)).toEqual([429]);
      expect((await there.gateway.budgets.status({ id: "b" })).data).toMatchObject([
        { limit: 4, settled: 4, remaining: 0 },
      ]);
      await clock.advance("20m");
      expect((await there.gateway.budgets.status({ id: "b" })).data).toMatchObject([
        { limit: 3, remaining: -1 },
      ]);
      expect(await there.gateway.budgets.raises({ id: "b" })).toMatchObject([{ amount: 1 }]);
      await clock.advance("40m");
      expect(await statuses(there, 3)).toEqual([200, 200, 429]);
      const leaves = await store.evidence.list({ organizationId: "" }, { cursor: null, limit: 9 });
      const kinds = leaves.data.map(({ kind }) => kind).filter((kind) => kind === "budget.raised");
      expect(kinds).toHaveLength(2);
    },
  );

  it("is rejected beyond a hundred, even with concurrent requests", async () => {
    const { gateway } = await createTestGateway({ store: open(), budgets: [two] });
    const raise = { id: "b", by: { requests: 1 }, until: "2026-02-01T00:00:00Z" };
    const asked = Array.from({ length: 110 }, () => gateway.budgets.raise(raise));
    const refused = (await Promise.allSettled(asked)).filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(10);
    for (const one of refused)
      expect(one).toMatchObject({ reason: { code: "invalid_argument", param: "id" } });
    expect(await gateway.budgets.raises({ id: "b" })).toHaveLength(100);
  });

  it("ends at once when it is cancelled", async () => {
    const test = await createTestGateway({ store: open(), budgets: [two] });
    const { budgets } = test.gateway;
    const by = { requests: 5 };
    const { id } = await budgets.raise({ id: "b", by, until: "2026-02-01T00:00:00Z" });
    expect(await statuses(test, 3)).toEqual([200, 200, 200]);
    await budgets.cancelRaise({ id: "b", raiseId: id, actor: "ops" });
    expect(await statuses(test, 1)).toEqual([429]);
    expect(await budgets.raises({ id: "b" })).toEqual([]);
    await expect(budgets.cancelRaise({ id: "b", raiseId: id })).rejects.toMatchObject({
      code: "invalid_argument",
      param: "raiseId",
    });
  });

  it("is made and cancelled only while its budget is as it was read, if asked to", async () => {
    const { gateway } = await createTestGateway({ store: open(), budgets: [two] });
    const { budgets } = gateway;
    const asked = { id: "b", by: { requests: 1 }, until: "2026-02-01T00:00:00Z" };
    const seen = etagOf(await budgets.get({ id: "b" }));
    const raise = await budgets.raise({ ...asked, ifMatch: seen });
    const stale = { code: "precondition_failed" };
    await expect(budgets.raise({ ...asked, ifMatch: "stale" })).rejects.toMatchObject(stale);
    for (const raiseId of [raise.id, "unknown"])
      await expect(
        budgets.cancelRaise({ id: "b", raiseId, ifMatch: "stale" }),
      ).rejects.toMatchObject(stale);
    for (const unknown of [{ raiseId: "unknown" }, { raiseId: "unknown", ifMatch: seen }])
      await expect(budgets.cancelRaise({ id: "b", ...unknown })).rejects.toMatchObject({
        code: "invalid_argument",
        param: "raiseId",
      });
    expect(await budgets.raises({ id: "b" })).toEqual([raise]);
    await budgets.cancelRaise({ id: "b", raiseId: raise.id, ifMatch: seen });
    expect(await budgets.raises({ id: "b" })).toEqual([]);
  });

  it("rejects an invalid raise, and leaves nothing behind", async () => {
    const { gateway, store } = await createTestGateway({ store: open(), budgets: [two] });
    const raise = { id: "b", by: { requests: 1 }, until: "2026-02-01T00:00:00Z" };
    const version = await store.budgets.version();
    for (const [wrong, code, param] of [
      [{ id: "c" }, "budget_not_found", null],
      [{ by: { usd: 1 } }, "invalid_argument", "by"],
      [{ by: { requests: 0 } }, "invalid_argument", "by"],
      [{ by: { requests: -1 } }, "invalid_argument", "by.requests"],
      [{ by: { requests: Number.NaN } }, "invalid_argument", "by"],
      [{ until: "2025-12-31T00:00:00Z" }, "invalid_argument", "until"],
      [{ until: "tomorrow" }, "invalid_argument", "until"],
      [{ actor: "" }, "invalid_argument", "actor"],
    ] as const)
      await expect(gateway.budgets.raise({ ...raise, ...wrong })).rejects.toMatchObject({
        code,
        param,
      });
    expect(await store.budgets.version()).toBe(version);
    expect(await gateway.budgets.raises({ id: "b" })).toEqual([]);
  });
});

describe("an invalid budget", () => {
  it("is rejected with the range of amounts, in dollars too", async () => {
    const { gateway } = await createTestGateway();
    await expect(gateway.budgets.create({ ...two, limit: { usd: 1e9 } })).rejects.toMatchObject({
      message:
        "`limit` must be one of { usd }, from 0 to 9007199 with at most 9 decimals, { tokens } and { requests }, whole numbers from 0.",
    });
    await gateway.budgets.create({ ...two, limit: { usd: "9007199.000000001" } });
  });

  it.each<[string, object]>([
    ["a negative limit", { limit: { usd: -1 } }],
    ["a limit that is not a number", { limit: { tokens: Number.NaN } }],
    ["an infinite limit", { limit: { usd: Number.POSITIVE_INFINITY } }],
    ["a fraction of a request", { limit: { requests: 1.5 } }],
    ["a fraction of a nanodollar", { limit: { usd: "0.0000000001" } }],
    ["a limit beyond the largest safe integer", { limit: { tokens: 2 ** 53 } }],
    ["two units", { limit: { usd: 1, tokens: 1 } }],
    ["no unit", { limit: {} }],
    ["an unknown unit", { limit: { euros: 1 } }],
    ["no limit", { limit: undefined }],
    ["an invalid pattern", { scope: { model: "gpt-*" } }],
    ["an empty list", { scope: { user: [] } }],
    ["a number for an id", { scope: { key: 5 } }],
    ["an unknown selector", { scope: { team: "a" } }],
    ["a scope that isn't an object", { scope: "acme" }],
    ["an unknown account owner", { scope: { connection: "ours" } }],
    ["an unknown value of each", { scope: { each: "model" } }],
    ["a gateway that does not exist", { scope: { gateway: "nowhere" } }],
    ["an unknown period", { period: "year" }],
    ["an unknown mode", { mode: "firm" }],
    ["an unknown member", { limits: 5 }],
    ["a threshold of 0", { warnAt: [0] }],
    ["a threshold beyond the limit", { warnAt: [1.5] }],
    ["too many thresholds", { warnAt: Array.from({ length: 11 }, (_, at) => (at + 1) / 20) }],
    ["an id with a space", { id: "a b" }],
    ["an id that a URL would drop", { id: ".." }],
  ])("is rejected with %s, both declared and created", async (_case, wrong) => {
    const { gateway, store } = await createTestGateway();
    const budget: BudgetConfiguration = { ...two, ...wrong };
    await expect(gateway.budgets.create(budget)).rejects.toMatchObject({
      code: "invalid_argument",
    });
    expect(await store.budgets.list()).toEqual([]);
    await expect(createTestGateway({ budgets: [budget] })).rejects.toMatchObject({
      code: "invalid_configuration",
    });
  });
});
