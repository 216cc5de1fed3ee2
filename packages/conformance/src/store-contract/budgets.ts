import type { BudgetCounter, StepOutcome, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { attemptSettlement } from "./settlement-intent.ts";

const organizationId = "acme";

/** Holds and counters: limits, charges and releases. */
export function budgetTests(test: ContractTest): void {
  test("allows a hard hold up to the limit and no further", async ({ store, intents }) => {
    for (const amount of [600, 400])
      await expectOpened(store.openStep(intents.step([], { holds: [intents.hold({ amount })] })));
    const hold = intents.hold({ amount: 1 });
    const refused = await store.openStep(intents.step([], { holds: [hold] }));
    expect(refused).toEqual({ opened: false, refusal: { code: "budget_exceeded", hold, left: 0 } });
    expect(await countersOf(store, "budget")).toEqual([counter({ held: 1_000 })]);
  });

  test("refuses every hold on a limit of 0, even free ones", async ({ store, intents }) => {
    const hold = intents.hold({ limit: 0, amount: 0 });
    const refused = await store.openStep(intents.step([user("a")], { holds: [hold] }));
    expect(refused).toEqual({ opened: false, refusal: { code: "budget_exceeded", hold, left: 0 } });
    const exhausted = intents.hold({ amount: 1_000 });
    await expectOpened(store.openStep(intents.step([user("b")], { holds: [exhausted] })));
    const free = intents.hold({ amount: 0 });
    await expectOpened(store.openStep(intents.step([user("c")], { holds: [free] })));
  });

  test("reports the amount left with a refusal, 0 if more than the limit was spent", async ({
    store,
    intents,
  }) => {
    const refusedAt = async (limit: number) => {
      const hold = intents.hold({ amount: 5_000, limit });
      const opening = await store.openStep(intents.step([], { holds: [hold] }));
      return opening.opened || opening.refusal;
    };
    const spent = intents.step([user("a")], { holds: [intents.hold({ amount: 300 })] });
    await expectOpened(store.openStep(spent));
    await store.settleStep(intents.settlement(spent));
    await expectOpened(
      store.openStep(intents.step([user("b")], { holds: [intents.hold({ amount: 200 })] })),
    );
    expect(await refusedAt(1_000)).toMatchObject({ code: "budget_exceeded", left: 740 });
    expect(await refusedAt(100)).toMatchObject({ code: "budget_exceeded", left: 0 });
    await expectOpened(
      store.openStep(intents.step([user("c")], { holds: [intents.hold({ amount: 740 })] })),
    );
  });

  test("refuses at every lower limit a hold it refuses at a limit", async ({ store, intents }) => {
    await expectOpened(
      store.openStep(intents.step([], { holds: [intents.hold({ amount: 700 })] })),
    );
    for (const limit of [999, 800, 300, 1, 0]) {
      const holds = [intents.hold({ amount: 300, limit })];
      expect((await store.openStep(intents.step([], { holds }))).opened).toBe(false);
    }
    await expectOpened(
      store.openStep(intents.step([], { holds: [intents.hold({ amount: 300 })] })),
    );
  });

  test("never refuses a soft hold, but counts it", async ({ store, intents }) => {
    const hold = intents.hold({ mode: "soft", limit: 0, amount: 5_000 });
    const step = intents.step([user("a")], { holds: [hold] });
    await expectOpened(store.openStep(step));
    expect(await countersOf(store, "budget")).toEqual([counter({ held: 5_000 })]);
    await store.settleStep(intents.settlement(step));
    expect(await countersOf(store, "budget")).toEqual([counter({ settled: 60 })]);
  });

  test("takes all holds or none, and names the first that doesn't fit", async ({
    store,
    intents,
  }) => {
    const tight = intents.hold({ budgetId: "b", limit: 99 });
    const holds = [
      intents.hold({ budgetId: "a" }),
      tight,
      intents.hold({ budgetId: "c", limit: 0 }),
    ];
    const step = intents.step([user("a")], { holds });
    expect(await store.openStep(step)).toEqual({
      opened: false,
      refusal: { code: "budget_exceeded", hold: tight, left: 99 },
    });
    for (const { budgetId } of holds) expect(await countersOf(store, budgetId)).toEqual([]);
    expect(await store.steps.get(organizationId, step.stepId)).toBeNull();
    expect(await store.decisions.get(organizationId, step.decision.id)).toBeNull();
    const leaves = await store.evidence.list({ organizationId }, { cursor: null, limit: 9 });
    expect(leaves.data).toHaveLength(1);
  });

  test("charges each unit in its own measure, and requests at the held amount", async ({
    store,
    intents,
  }) => {
    const holds = (["requests", "tokens", "usd"] as const).map((unit) =>
      intents.hold({ budgetId: unit, unit, amount: unit === "requests" ? 1 : 100 }),
    );
    const step = intents.step([user("a")], { holds });
    await expectOpened(store.openStep(step));
    const attempt = { charge: { usd: 250, tokens: 7 } };
    await store.settleStep(intents.settlement(step, { outcome: "failed", attempt }));
    for (const [unit, settled] of Object.entries({ requests: 1, tokens: 7, usd: 250 }))
      expect(await countersOf(store, unit)).toMatchObject([{ unit, settled, held: 0 }]);
  });

  for (const outcome of ["completed", "failed", "cancelled", "interrupted"] satisfies StepOutcome[])
    test(`releases every hold of a Step that ended ${outcome}`, async ({ store, intents }) => {
      const step = intents.step([user("a")], { holds: [intents.hold()] });
      await expectOpened(store.openStep(step));
      await store.settleStep(intents.settlement(step, { outcome }));
      await store.settleStep(intents.settlement(step, { outcome: "interrupted" }));
      expect(await countersOf(store, "budget")).toEqual([counter({ settled: 60 })]);
    });

  test("counts a hold for its subject and the period in which it was taken", async ({
    store,
    intents,
  }) => {
    const places = [
      { subject: "ada", periodStart: 1_000 },
      { subject: "ada", periodStart: 2_000 },
      { subject: "bob", periodStart: 2_000 },
    ];
    const steps = places.map((place) => intents.step([], { holds: [intents.hold(place)] }));
    for (const step of steps) await expectOpened(store.openStep(step));
    for (const step of steps.slice(0, 1)) await store.settleStep(intents.settlement(step));
    expect(await countersOf(store, "budget")).toEqual([
      counter({ ...places[1], held: 100 }),
      counter({ ...places[2], held: 100 }),
      counter({ ...places[0], settled: 60 }),
    ]);
    const page = { cursor: null, limit: 9 };
    const bob = { budgetId: "budget", subject: "bob" };
    expect((await store.budgets.counters(bob, page)).data).toHaveLength(1);
    const later = { budgetId: "budget", periodStart: 2_000 };
    expect((await store.budgets.counters(later, page)).data).toHaveLength(2);
  });

  test("lists the counters of a period by the bytes of their subjects", async ({
    store,
    intents,
  }) => {
    const subjects = ["a\u{1f600}", "b", "a\uffee", "A", ""];
    for (const subject of subjects)
      await expectOpened(store.openStep(intents.step([], { holds: [intents.hold({ subject })] })));
    const listed: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<Store["budgets"]["counters"]>> = await store.budgets.counters(
        { budgetId: "budget" },
        { cursor, limit: 2 },
      );
      listed.push(...page.data.map(({ subject }) => subject));
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(listed).toEqual(["", "A", "a\uffee", "a\u{1f600}", "b"]);
  });

  test("settles an attempt's holds before it takes those of the next", async ({
    store,
    intents,
  }) => {
    const step = intents.step([user("a")], { holds: [intents.hold({ amount: 900 })] });
    await expectOpened(store.openStep(step));
    const holds = [intents.hold({ amount: 940 }), intents.hold({ budgetId: "other" })];
    expect(await store.openAttempt(intents.attempt(step, { holds }))).toEqual({ opened: true });
    expect(await countersOf(store, "budget")).toEqual([counter({ settled: 60, held: 940 })]);
    await store.settleStep(intents.settlement(step, { attempt: attemptSettlement(2) }));
    expect(await countersOf(store, "budget")).toEqual([counter({ settled: 120 })]);
    expect(await countersOf(store, "other")).toMatchObject([{ settled: 60, held: 0 }]);
  });

  test("changes nothing if the holds of an attempt don't fit", async ({ store, intents }) => {
    const step = intents.step([user("a")], { holds: [intents.hold({ amount: 900 })] });
    await expectOpened(store.openStep(step));
    const before = await store.steps.get(organizationId, step.stepId);
    const tight = intents.hold({ amount: 941 });
    const decision = intents.decision();
    const holds = [intents.hold({ budgetId: "a" }), tight];
    const further = intents.attempt(step, { holds, decision });
    expect(await store.openAttempt(further)).toEqual({ opened: false, hold: tight, left: 940 });
    expect(await countersOf(store, "budget")).toEqual([counter({ held: 900 })]);
    expect(await countersOf(store, "a")).toEqual([]);
    expect(await store.steps.get(organizationId, step.stepId)).toEqual(before);
    expect(await store.decisions.get(organizationId, decision.id)).toBeNull();
  });

  test("charges the cost of both attempts to holds the second one kept", async ({
    store,
    intents,
  }) => {
    const requests = intents.hold({ budgetId: "requests", unit: "requests", amount: 1 });
    const step = intents.step([user("a")], { holds: [intents.hold({ amount: 900 }), requests] });
    await expectOpened(store.openStep(step));
    await store.openAttempt(intents.attempt(step));
    const [running] = await countersOf(store, "budget");
    expect((running?.settled ?? 0) + (running?.held ?? 0)).toBeLessThanOrEqual(1_000);
    await store.settleStep(intents.settlement(step, { attempt: attemptSettlement(2) }));
    expect(await countersOf(store, "budget")).toEqual([counter({ settled: 120 })]);
    expect(await countersOf(store, "requests")).toMatchObject([{ settled: 1, held: 0 }]);
  });

  test("accepts either a new attempt or a concurrent settlement, and leaves nothing held", async ({
    store,
    intents,
  }) => {
    for (const settlesFirst of [true, false]) {
      const step = intents.step([user("a")], { holds: [intents.hold()] });
      await expectOpened(store.openStep(step));
      const verbs = [
        () => store.settleStep(intents.settlement(step)),
        () => store.openAttempt(intents.attempt(step, { holds: [intents.hold({ amount: 50 })] })),
      ];
      const started = (settlesFirst ? verbs : verbs.reverse()).map((verb) => verb());
      await Promise.allSettled(started);
      const attempts = (await store.steps.get(organizationId, step.stepId))?.attempts ?? [];
      const running = attempts.find(({ end }) => end === null);
      expect(attempts).toHaveLength(running ? 2 : 1);
      const attempt = attemptSettlement(attempts.length);
      const last = await store.settleStep(intents.settlement(step, { attempt }));
      expect(last.settled).toBe(running !== undefined);
      expect(await countersOf(store, "budget")).toMatchObject([{ held: 0 }]);
    }
  });

  test("counts amounts exactly up to the largest safe integer", async ({ store, intents }) => {
    const most = Number.MAX_SAFE_INTEGER;
    const hold = intents.hold({ amount: most, limit: most });
    const step = intents.step([user("a")], { holds: [hold] });
    await expectOpened(store.openStep(step));
    expect(await countersOf(store, "budget")).toEqual([counter({ held: most })]);
    const usage = { promptTokens: most - 1, completionTokens: 1, totalTokens: most };
    const attempt = { charge: { usd: most, tokens: most }, costNanoUsd: most, usage };
    await store.settleStep(intents.settlement(step, { attempt }));
    expect(await countersOf(store, "budget")).toEqual([counter({ settled: most })]);
    const [ended] = (await store.steps.get(organizationId, step.stepId))?.attempts ?? [];
    expect(ended?.end).toMatchObject({ costNanoUsd: most, usage });
    const holds = [intents.hold({ amount: 1, limit: most })];
    expect((await store.openStep(intents.step([user("b")], { holds }))).opened).toBe(false);
  });

  test("opens exactly as many of 200 concurrent Steps as fit the budget", async ({
    store,
    intents,
  }) => {
    const holds = [intents.hold({ limit: 50, amount: 1, unit: "requests" })];
    const steps = Array.from({ length: 200 }, (_, at) => intents.step([user(`${at}`)], { holds }));
    const openings = await Promise.all(steps.map((step) => store.openStep(step)));
    expect(openings.filter((opening) => opening.opened)).toHaveLength(50);
    const running = steps.filter((_, at) => openings[at]?.opened);
    await Promise.all(running.map((step) => store.settleStep(intents.settlement(step))));
    expect(await countersOf(store, "budget")).toMatchObject([{ settled: 50, held: 0 }]);
  });
}

export async function countersOf(
  store: Store,
  budgetId: string,
): Promise<readonly BudgetCounter[]> {
  return (await store.budgets.counters({ budgetId }, { cursor: null, limit: 100 })).data;
}

function counter(overrides: Partial<BudgetCounter>): BudgetCounter {
  const place = { budgetId: "budget", subject: "", periodStart: 0 };
  return { ...place, unit: "usd", settled: 0, held: 0, ...overrides };
}
