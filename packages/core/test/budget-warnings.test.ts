import type { GatewayEvent } from "@tollgate/core";
import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { countingIds, createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { stores } from "./stores.ts";

const warningsIn = (seen: readonly GatewayEvent[]) =>
  seen.flatMap((event) =>
    event.type === "budget.warned" ? [[event.budgetId, event.threshold, event.settled]] : [],
  );

// Each plain answer uses 15 tokens.
describe.each(stores)("observers on %s", (_, open) => {
  it.each(["hard", "soft"] as const)(
    "are notified once when a %s budget reaches a threshold",
    async (mode) => {
      const log = eventLog();
      const { gateway, chat, key } = await createTestGateway({
        store: open(),
        observers: log.observers,
        budgets: [
          { id: "default", limit: { requests: 5 }, period: "day", mode, scope: { each: "key" } },
          { id: "own", limit: { requests: 4 }, period: "day", mode: "soft", warnAt: [1, 0.5, 0.5] },
          { id: "silent", limit: { requests: 1 }, period: "day", mode: "soft", warnAt: [] },
          { id: "roomy", limit: { tokens: 10_000 }, period: "day", mode: "soft" },
        ],
      });
      for (let count = 0; count < 5; count++) await gateway.fetch(chat());
      await log.seeing("budget.warned", 4);
      expect(warningsIn(log.seen).sort()).toEqual([
        ["default", 0.8, 4],
        ["default", 1, 5],
        ["own", 0.5, 2],
        ["own", 1, 4],
      ]);
      expect(log.seen).toContainEqual(
        expect.objectContaining({ budgetId: "default", subject: key.id, threshold: 1, limit: 5 }),
      );
    },
  );

  it("are notified of a threshold that other processes reached, with the next Step after a second", async () => {
    const store = open();
    const log = eventLog();
    const budgets = [{ id: "b", limit: { tokens: 100 }, period: "day", mode: "soft" }] as const;
    const here = await createTestGateway({ store, budgets, observers: log.observers });
    const { clock } = here;
    const there = await createTestGateway({ store, budgets, clock, ids: countingIds(1) });
    await here.gateway.fetch(here.chat());
    for (let count = 0; count < 6; count++) await there.gateway.fetch(there.chat());
    await clock.advance("1s");
    await here.gateway.fetch(here.chat());
    await log.seeing("budget.warned", 2);
    expect(warningsIn(log.seen)).toEqual([
      ["b", 0.8, 120],
      ["b", 1, 120],
    ]);
  });

  it("are notified again under a raised limit, and in a new period", async () => {
    const log = eventLog();
    const { gateway, chat, clock } = await createTestGateway({
      store: open(),
      observers: log.observers,
      budgets: [{ id: "b", limit: { requests: 1 }, period: "hour", warnAt: [1] }],
    });
    await gateway.fetch(chat());
    await log.seeing("budget.warned");
    await gateway.budgets.raise({ id: "b", by: { requests: 1 }, until: "2026-01-01T01:00:00Z" });
    await gateway.fetch(chat());
    await log.seeing("budget.warned", 2);
    await clock.advance("1h");
    await gateway.fetch(chat());
    await log.seeing("budget.warned", 3);
    expect(warningsIn(log.seen)).toEqual([
      ["b", 1, 1],
      ["b", 1, 2],
      ["b", 1, 1],
    ]);
  });

  it("are notified of a threshold that was added after another one was reached", async () => {
    const log = eventLog();
    const { gateway, chat } = await createTestGateway({ store: open(), observers: log.observers });
    const budget = { id: "b", limit: { requests: 4 }, period: "day", mode: "soft" } as const;
    await gateway.budgets.create({ ...budget, warnAt: [0.5] });
    for (let count = 0; count < 2; count++) await gateway.fetch(chat());
    await log.seeing("budget.warned");
    await gateway.budgets.update({ ...budget, warnAt: [0.75] });
    await gateway.fetch(chat());
    await log.seeing("budget.warned", 2);
    expect(warningsIn(log.seen)).toEqual([
      ["b", 0.5, 2],
      ["b", 0.75, 3],
    ]);
  });

  it("are notified once of a limit that is raised while Steps run, however these settle", async () => {
    const log = eventLog();
    const { gateway, chat, provider } = await createTestGateway({
      store: open(),
      observers: log.observers,
      budgets: [
        { id: "b", limit: { tokens: 40 }, period: "day", mode: "soft", warnAt: [0.25, 1] },
        { id: "end", limit: { requests: 4 }, period: "day", mode: "soft", warnAt: [1] },
      ],
    });
    const begin = async () => {
      const asked = Promise.withResolvers<void>();
      const reply = Promise.withResolvers<string>();
      provider.reply(() => {
        asked.resolve();
        return reply.promise;
      });
      const answer = gateway.fetch(chat());
      await asked.promise;
      return async () => {
        reply.resolve("OK");
        await (await answer).text();
      };
    };
    const before = [await begin(), await begin()];
    await gateway.budgets.raise({ id: "b", by: { tokens: 1 }, until: "2026-01-01T12:00:00Z" });
    const after = [await begin(), await begin()];
    for (const [at, settle] of before.entries()) {
      await settle();
      await after[at]?.();
    }
    await log.seeing("budget.warned", 3);
    expect(warningsIn(log.seen)).toEqual([
      ["b", 0.25, 15],
      ["b", 1, 45],
      ["end", 1, 4],
    ]);
    expect(log.seen).not.toContainEqual(expect.objectContaining({ budgetId: "b", limit: 40 }));
  });

  it("are notified once of a limit that is raised while its counter is read", async () => {
    const log = eventLog();
    const store = open();
    const asked = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let reads = 0;
    const counters: typeof store.budgets.counters = async (...query) => {
      const found = await store.budgets.counters(...query);
      if (++reads > 1) return found;
      asked.resolve();
      await released.promise;
      return found;
    };
    const { gateway, chat } = await createTestGateway({
      store: { ...store, budgets: { ...store.budgets, counters } },
      observers: log.observers,
      budgets: [
        { id: "b", limit: { requests: 4 }, period: "day", mode: "soft", warnAt: [0.25] },
        { id: "end", limit: { requests: 3 }, period: "day", mode: "soft", warnAt: [1] },
      ],
    });
    await gateway.fetch(chat());
    await asked.promise;
    await gateway.budgets.raise({ id: "b", by: { requests: 1 }, until: "2026-01-01T12:00:00Z" });
    await gateway.fetch(chat());
    await log.seeing("budget.warned");
    released.resolve();
    await gateway.fetch(chat());
    await log.seeing("budget.warned", 2);
    expect(log.seen.filter(({ type }) => type === "budget.warned")).toMatchObject([
      { budgetId: "b", threshold: 0.25, limit: 5 },
      { budgetId: "end", threshold: 1, limit: 3 },
    ]);
  });

  it("are notified of the budgets of a model that failed before its fallback answered", async () => {
    const log = eventLog();
    const scope = { gateway: "test" };
    const { gateway, chat, provider } = await createTestGateway({
      store: open(),
      observers: log.observers,
      policy: definePolicy({
        rules: [permit("all", {}, { fallbacks: ["spare/tollgate/scripted"] })],
      }),
      retries: { max: 0, allowDuplicates: true },
      budgets: [
        { id: "requests", scope, limit: { requests: 1 }, period: "day", mode: "soft", warnAt: [1] },
        { id: "tokens", scope, limit: { tokens: 8_000 }, period: "day", mode: "soft", warnAt: [1] },
      ],
    });
    const failure = new ProviderError("Lost.", { reason: "connection_lost", delivery: "unknown" });
    provider.fail(failure, { when: (call) => call.gateway === "test", times: 2 });
    // Each charges its whole hold: 10 tokens of input, and an answer of up to 4,096.
    for (let count = 0; count < 2; count++) await gateway.fetch(chat());
    await log.seeing("budget.warned", 2);
    expect(warningsIn(log.seen)).toEqual([
      ["requests", 1, 1],
      ["tokens", 1, 8_212],
    ]);
  });
});
