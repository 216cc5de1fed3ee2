import type { Budget, Hold, RateLimit, Store } from "@tollgate/core/store";
import fc from "fast-check";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import type { Intents } from "./intents.ts";

const rateLimit: RateLimit = {
  id: "rpm",
  scope: { organization: ["acme", "globex"], model: "sim/*/*", each: "model" },
  unit: "requests",
  limit: 1_000_000_000,
  per: "day",
  burst: 100_000_000,
};

/** The interval of a rate limit in microseconds, and its burst. */
const interval = 1_000;
const burst = 3;

/** Rate limits in a store: paces, which follow the clock, and Steps in flight. */
export function rateLimitTests(test: ContractTest): void {
  test("allows a pace's burst at once, then one request per interval", async ({
    store,
    intents,
  }) => {
    const open = (at: number) =>
      store.openStep(intents.step([], { holds: [requestAt(intents, at)] }));
    for (const _ of Array(burst)) await expectOpened(open(5_000_000));
    expect(await open(5_000_000)).toMatchObject({
      opened: false,
      refusal: { code: "budget_exceeded", left: 0 },
    });
    expect(await open(5_000_999)).toMatchObject({ opened: false, refusal: { left: 999 } });
    await expectOpened(open(5_001_000));
    expect((await open(5_001_000)).opened).toBe(false);
  });

  test("allows no more than the burst after a long pause", async ({ store, intents }) => {
    const open = (at: number) =>
      store.openStep(intents.step([], { holds: [requestAt(intents, at)] }));
    await expectOpened(open(1_000_000));
    for (const _ of Array(burst)) await expectOpened(open(9_000_000_000));
    expect((await open(9_000_000_000)).opened).toBe(false);
  });

  test("never exceeds the limit plus the burst in any window of a pace", async ({
    store,
    intents,
  }) => {
    const gaps = fc.array(fc.integer({ min: 0, max: 2 * interval }), { maxLength: 40 });
    let pace = 0;
    await fc.assert(
      fc.asyncProperty(gaps, async (waits) => {
        const budgetId = `pace ${pace++}`;
        const allowed: number[] = [];
        let at = 1_000_000;
        for (const wait of waits) {
          at += wait;
          const holds = [{ ...requestAt(intents, at), budgetId }];
          if ((await store.openStep(intents.step([], { holds }))).opened) allowed.push(at);
        }
        for (const length of [interval, 5 * interval, 20 * interval])
          for (const from of allowed) {
            const inWindow = allowed.filter((one) => one >= from && one < from + length);
            expect(inWindow.length).toBeLessThanOrEqual(length / interval + burst);
          }
      }),
      { numRuns: 15 },
    );
  });

  test("opens as many concurrent Steps as a pace allows", async ({ store, intents }) => {
    const steps = Array.from({ length: 20 }, () =>
      intents.step([], { holds: [requestAt(intents, 7_000_000)] }),
    );
    const openings = await Promise.all(steps.map((step) => store.openStep(step)));
    expect(openings.filter((one) => one.opened)).toHaveLength(burst);
  });

  test("does not count a refused Step for any of its paces", async ({ store, intents }) => {
    const other = { ...requestAt(intents, 5_000_000), budgetId: "other", limit: 0 };
    const holds = [requestAt(intents, 5_000_000), other];
    expect((await store.openStep(intents.step([], { holds }))).opened).toBe(false);
    const page = { cursor: null, limit: 9 };
    for (const budgetId of ["pace", "other"])
      expect((await store.budgets.counters({ budgetId }, page)).data).toEqual([]);
  });

  test("corrects a pace of tokens to the used tokens when the Step settles", async ({
    store,
    intents,
  }) => {
    const step = intents.step([user("a")], { holds: [tokensAt(intents, 5_000_000)] });
    await expectOpened(store.openStep(step));
    expect(await paceOf(store)).toBe(5_000_000 + 60_000);
    const { estimatedInputTokens, estimatedOutputTokens } = step.attempt;
    const tokens = (estimatedInputTokens + estimatedOutputTokens) / 2;
    const attempt = { charge: { usd: 1, tokens } };
    await store.settleStep(intents.settlement(step, { attempt }));
    expect(await paceOf(store)).toBe(5_000_000 + 30_000);
  });

  test("settles a Step whose tokens would push a pace beyond the largest safe integer", async ({
    store,
    intents,
  }) => {
    const slow = { ...tokensAt(intents, 5_000_000), amount: 1e12, limit: 2e12 };
    const step = intents.step([user("a")], { holds: [slow] });
    await expectOpened(store.openStep(step));
    const attempt = { charge: { usd: 1, tokens: Number.MAX_SAFE_INTEGER } };
    await store.settleStep(intents.settlement(step, { attempt }));
    expect(await paceOf(store)).toBe(Number.MAX_SAFE_INTEGER);
  });

  test("returns how far a pace is beyond the limit of a refused Step", async ({
    store,
    intents,
  }) => {
    const open = (at: number) =>
      store.openStep(intents.step([], { holds: [requestAt(intents, at)] }));
    for (const _ of Array(burst)) await expectOpened(open(5_000_000));
    expect(await open(4_998_000)).toMatchObject({ opened: false, refusal: { left: -2_000 } });
  });

  test("counts Steps in flight until they settle, however they end", async ({ store, intents }) => {
    const inFlight: Partial<Hold> = { budgetId: "flight", unit: "steps", amount: 1, limit: 2 };
    const next = () => intents.step([], { holds: [intents.hold(inFlight)] });
    const [first, second] = [next(), next()];
    await expectOpened(store.openStep(first));
    await expectOpened(store.openStep(second));
    expect(await store.openStep(next())).toMatchObject({ opened: false, refusal: { left: 0 } });
    await store.settleStep(intents.settlement(first));
    await expectOpened(store.openStep(next()));
    await store.settleStep(intents.settlement(second, { outcome: "interrupted" }));
    const page = { cursor: null, limit: 9 };
    expect((await store.budgets.counters({ budgetId: "flight" }, page)).data).toMatchObject([
      { unit: "steps", settled: 0, held: 1 },
    ]);
  });

  test("creates, replaces and removes a rate limit, and returns all of it", async ({
    store,
    intents,
  }) => {
    const { rateLimits } = store;
    const before = await store.budgets.version();
    expect(await rateLimits.insert(rateLimit, intents.leaf("rate_limit.created"))).toBe(true);
    expect(await rateLimits.insert(rateLimit, intents.leaf("rate_limit.created"))).toBe(false);
    expect(await rateLimits.list()).toEqual([rateLimit]);
    const changed: RateLimit = { ...rateLimit, unit: "steps", per: null, burst: 0, scope: {} };
    expect(await rateLimits.update(changed, intents.leaf("rate_limit.updated"))).toBe(true);
    expect(await rateLimits.list()).toEqual([changed]);
    expect(await rateLimits.remove("rpm", intents.leaf("rate_limit.removed"))).toBe(true);
    expect(await rateLimits.remove("rpm", intents.leaf("rate_limit.removed"))).toBe(false);
    expect(await rateLimits.update(changed, intents.leaf("rate_limit.updated"))).toBe(false);
    expect(await rateLimits.list()).toEqual([]);
    expect(await store.budgets.version()).toBe(before + 3);
    const page = { cursor: null, limit: 9 };
    const { data } = await store.evidence.changes({ organizationId: "acme" }, page);
    expect(data.map(({ kind }) => kind).toReversed()).toEqual([
      "key.created",
      "rate_limit.created",
      "rate_limit.updated",
      "rate_limit.removed",
    ]);
  });

  test("rejects a rate limit with the id of a budget, and the other way round", async ({
    store,
    intents,
  }) => {
    const budget: Budget = {
      id: "rpm",
      scope: {},
      unit: "usd",
      limit: 1,
      period: "day",
      mode: "hard",
      warnAt: [],
    };
    await store.rateLimits.insert(rateLimit, intents.leaf("rate_limit.created"));
    expect(await store.budgets.insert(budget, intents.leaf("budget.created"))).toBe(false);
    await store.rateLimits.remove("rpm", intents.leaf("rate_limit.removed"));
    expect(await store.budgets.insert(budget, intents.leaf("budget.created"))).toBe(true);
    expect(await store.rateLimits.insert(rateLimit, intents.leaf("rate_limit.created"))).toBe(
      false,
    );
  });

  test("returns each pace of a Step as the Step left it", async ({ store, intents }) => {
    const at = 5_000_000;
    const open = async () => {
      const paces = [requestAt(intents, at), { ...requestAt(intents, at), budgetId: "second" }];
      const holds = [paces[0], intents.hold({ budgetId: "usd" }), paces[1]].flatMap(
        (one) => one ?? [],
      );
      const opening = await store.openStep(intents.step([], { holds }));
      return opening.opened ? opening.paces : null;
    };
    expect(await open()).toEqual([at + interval, at + interval]);
    expect(await open()).toEqual([at + 2 * interval, at + 2 * interval]);
    const together = await Promise.all([open(), open()]);
    expect(together).toContainEqual([at + 3 * interval, at + 3 * interval]);
    expect(together).toContainEqual(null);
    const free = await store.openStep(intents.step([user("a")]));
    expect(free.opened && free.paces).toBeUndefined();
  });

  test("does not reconcile counters of paces", async ({ store, intents }) => {
    const holds = [requestAt(intents, 5_000_000), tokensAt(intents, 5_000_000)];
    const step = intents.step([user("a")], { holds });
    await expectOpened(store.openStep(step));
    await store.settleStep(intents.settlement(step));
    expect(await store.budgets.reconcile({ limit: 9 })).toEqual({ counters: 0, drift: [] });
  });
}

function requestAt(intents: Intents, at: number): Hold {
  const limit = at + burst * interval;
  const pace = { unit: "requests_pace", amount: interval, floor: at, limit } as const;
  return intents.hold({ ...pace, budgetId: "pace" });
}

function tokensAt(intents: Intents, at: number): Hold {
  const pace = { unit: "tokens_pace", amount: 60_000, floor: at, limit: at + 100_000 } as const;
  return intents.hold({ ...pace, budgetId: "tokens" });
}

async function paceOf(store: Store): Promise<number | undefined> {
  const page = { cursor: null, limit: 1 };
  return (await store.budgets.counters({ budgetId: "tokens" }, page)).data[0]?.settled;
}
