import { systemClock } from "@tollgate/core";
import type { StepIntent, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { countersOf } from "./budgets.ts";
import { user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { createIntents, type Intents } from "./intents.ts";

const clock = "gateway";
const lease = { processId: "process-1", at: 0, until: 1_000, clock, steps: [] } as const;

/** Steps whose process will never settle them. */
export function leaseTests(test: ContractTest): void {
  test("finds Steps without a lease or with a lapsed lease, and no others", async ({
    store,
    intents,
  }) => {
    const step = await openOne(store, intents);
    expect(await lapsedIds(store, 0)).toEqual([step.stepId]);
    await store.renewLease({ ...lease, renewal: 1 });
    expect(await lapsedIds(store, 999)).toEqual([]);
    expect(await lapsedIds(store, 1_000)).toEqual([step.stepId]);
    await store.renewLease({ ...lease, renewal: 2, until: 2_000, steps: [named(step, 1)] });
    expect(await lapsedIds(store, 1_000)).toEqual([]);
  });

  test("finds Steps in the order in which they opened", async ({ store, intents }) => {
    const settled = await openOne(store, intents);
    const first = await openOne(store, intents);
    const second = await openOne(store, intents);
    await store.settleStep(intents.settlement(settled));
    const third = await openOne(store, intents);
    expect(await lapsedIds(store, 0)).toEqual([first.stepId, second.stepId, third.stepId]);
  });

  test("finds a Step that its running process no longer reports", async ({ store, intents }) => {
    await store.renewLease({ ...lease, renewal: 1 });
    const [kept, dropped] = [await openOne(store, intents), await openOne(store, intents)];
    // Both opened after the first renewal, which could not include them.
    expect(await lapsedIds(store, 1)).toEqual([]);
    await store.renewLease({ ...lease, renewal: 2, steps: [named(kept, 0), named(dropped, 0)] });
    expect(await lapsedIds(store, 1)).toEqual([]);
    await store.renewLease({ ...lease, renewal: 3, steps: [named(kept, 0)] });
    expect(await lapsedIds(store, 1)).toEqual([dropped.stepId]);
  });

  test("tells how busy it is, also while it writes and after it closed", async ({
    store,
    intents,
  }) => {
    expectPlausible(store);
    const steps = Array.from({ length: 8 }, () => openOne(store, intents));
    expectPlausible(store);
    await Promise.all(steps);
    expect(store.status().waiting).toBe(0);
    await store.close();
    expectPlausible(store);
    expect(store.status()).toMatchObject({ waiting: 0, inUse: 0 });
  });

  test("returns everything recovery needs with a lapsed Step", async ({ store, intents }) => {
    const other = intents.withOwner({ organizationId: "globex" });
    await store.keys.insert(other.key());
    const seen = await openOne(store, intents);
    const unseen = await openOne(store, other);
    const steps = [named(seen, 42), { ...named(seen, 1), stepId: intents.id() }];
    await store.renewLease({ ...lease, renewal: 2, until: 10, steps });
    const found = await store.lapsedSteps({ at: 10, clock, after: null, limit: 9 });
    expect(found).toEqual({
      steps: [
        { step: await store.steps.get("acme", seen.stepId), outputTokens: 42 },
        { step: await store.steps.get("globex", unseen.stepId), outputTokens: null },
      ],
      damaged: [],
      next: null,
    });
  });

  test("finds lapsed Steps page by page, each once although earlier ones are settled", async ({
    store,
    intents,
  }) => {
    const opened: StepIntent[] = [];
    for (let count = 0; count < 5; count++) opened.push(await openOne(store, intents));
    const found: string[] = [];
    for (let after: number | null = null; ; ) {
      const { steps, next } = await store.lapsedSteps({ at: 0, clock, after, limit: 2 });
      expect(steps.length).toBeLessThanOrEqual(2);
      found.push(...steps.map(({ step }) => step.id));
      const [first] = opened;
      if (first) await store.settleStep(intents.settlement(first));
      if (next === null) break;
      after = next;
    }
    expect(found).toEqual(opened.map(({ stepId }) => stepId));
  });

  test("renews Steps only of the named organization, even if ids are equal", async ({
    store,
    intents,
  }) => {
    const theirs = createIntents("globex");
    await store.keys.insert(theirs.key());
    const step = await openOne(store, intents);
    const namesake = theirs.step([user("a")], { stepId: step.stepId });
    await expectOpened(store.openStep(namesake));
    await store.renewLease({ ...lease, renewal: 2, until: 10, steps: [named(step, 42)] });
    const lapsed = async (at: number) =>
      (await store.lapsedSteps({ at, clock, after: null, limit: 9 })).steps.map((found) => [
        found.step.organizationId,
        found.outputTokens,
      ]);
    expect(await lapsed(9)).toEqual([["globex", null]]);
    expect(await lapsed(10)).toEqual([
      ["acme", 42],
      ["globex", null],
    ]);
  });

  test("ignores a renewal that arrives after a later one", async ({ store, intents }) => {
    const step = await openOne(store, intents);
    await store.renewLease({ ...lease, renewal: 3, until: 3_000, steps: [named(step, 30)] });
    await store.renewLease({ ...lease, renewal: 2, until: 2_000, steps: [] });
    expect(await lapsedIds(store, 2_500)).toEqual([]);
    const { steps } = await store.lapsedSteps({ at: 3_000, clock, after: null, limit: 1 });
    expect(steps[0]?.outputTokens).toBe(30);
  });

  test("does not extend the Steps of another process", async ({ store, intents }) => {
    const step = await openOne(store, intents);
    await store.renewLease({ ...lease, processId: "process-2", renewal: 1 });
    expect(await lapsedIds(store, 1)).toEqual([step.stepId]);
  });

  test("lets a lease on the store's clock last exactly its duration", async ({
    store,
    intents,
  }) => {
    const step = await openOne(store, intents);
    const now = { at: systemClock.now(), clock: "store" } as const;
    const lapsed = async () =>
      (await store.lapsedSteps({ ...now, at: systemClock.now(), after: null, limit: 9 })).steps.map(
        ({ step: { id } }) => id,
      );
    await store.renewLease({ ...lease, ...now, renewal: 1, until: now.at + 60_000 });
    expect(await lapsed()).toEqual([]);
    await store.renewLease({
      ...lease,
      ...now,
      renewal: 2,
      until: now.at,
      steps: [named(step, 1)],
    });
    expect(await lapsed()).toEqual([step.stepId]);
  });

  test("never finds settled Steps, and lets one of many recoveries settle", async ({
    store,
    intents,
  }) => {
    const step = await openOne(store, intents);
    const settlements = Array.from({ length: 5 }, () =>
      store.settleStep(intents.settlement(step, { outcome: "interrupted" })),
    );
    const results = await Promise.all(settlements);
    expect(results.filter(({ settled }) => settled)).toHaveLength(1);
    expect(await lapsedIds(store, 0)).toEqual([]);
    expect(await countersOf(store, "budget")).toMatchObject([{ settled: 60, held: 0 }]);
    await store.renewLease({ ...lease, renewal: 1, steps: [named(step, 1)] });
    expect(await lapsedIds(store, 9_000)).toEqual([]);
  });
}

async function openOne(store: Store, intents: Intents): Promise<StepIntent> {
  const step = intents.step([user("a")], { holds: [intents.hold()] });
  await expectOpened(store.openStep(step));
  return step;
}

function named({ owner, stepId }: StepIntent, outputTokens: number) {
  return { organizationId: owner.organizationId, stepId, outputTokens };
}

async function lapsedIds(store: Store, at: number): Promise<readonly string[]> {
  const { steps } = await store.lapsedSteps({ at, clock, after: null, limit: 100 });
  return steps.map(({ step }) => step.id);
}

function expectPlausible(store: Store): void {
  const { waiting, inUse, most } = store.status();
  expect(Number.isInteger(waiting) && waiting >= 0).toBe(true);
  expect(Number.isInteger(inUse) && inUse >= 0 && inUse <= (most ?? inUse)).toBe(true);
}
