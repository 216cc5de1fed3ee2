import type { Hold, StepIntent, Store } from "@tollgate/core/store";
import fc from "fast-check";
import { expect } from "vitest";
import { countersOf } from "./budgets.ts";
import { user } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";
import { createIntents, type Intents } from "./intents.ts";
import { attemptSettlement } from "./settlement-intent.ts";

const limits = [300, 500, 800] as const;

/** One action on the budgets. All actions of a batch start together. */
type BudgetAction =
  | { readonly type: "open"; readonly amounts: readonly (number | null)[] }
  | { readonly type: "retry"; readonly which: number; readonly amounts: readonly (number | null)[] }
  | { readonly type: "settle"; readonly which: number; readonly share: number };

// Null leaves out a budget, so a Step may match any subset.
const amounts = fc.tuple(...limits.map(() => fc.option(fc.integer({ min: 0, max: 200 }))));
const which = fc.nat(1_000);

const act: fc.Arbitrary<BudgetAction> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant("open"), amounts }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("retry"), which, amounts }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("settle"),
      which,
      share: fc.integer({ max: 100, min: 0 }),
    }),
  },
);

const batches = fc.array(fc.array(act, { minLength: 1, maxLength: 8 }), { maxLength: 8 });

interface RunningStep {
  readonly step: StepIntent;
  readonly attempt: number;
  readonly holds: readonly Hold[];
}

/** Budgets under random interleavings: limits hold, and counters are the sums of all charges and holds. */
export function budgetPropertyTests(test: ContractTest): void {
  test("never exceeds the limit, and counts exactly the charges and the running holds", async ({
    store,
  }) => {
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(batches, async (list) => {
        const intents = createIntents(`organization-${++runs}`);
        await store.keys.insert(intents.key());
        const run = createRun(store, intents);
        for (const batch of list) {
          await run.execute(batch);
          await run.compare();
        }
        expect((await store.budgets.reconcile({ limit: 9 })).drift).toEqual([]);
        await run.settleAll();
        await run.compare();
      }),
      { numRuns: 40 },
    );
    const { counters, drift } = await store.budgets.reconcile({ limit: 9 });
    expect(counters).toBeGreaterThan(0);
    expect(drift).toEqual([]);
  });
}

interface BudgetRun {
  execute(batch: readonly BudgetAction[]): Promise<void>;
  settleAll(): Promise<void>;
  compare(): Promise<void>;
}

function createRun(store: Store, intents: Intents): BudgetRun {
  const subject = intents.owner.organizationId;
  const running = new Map<string, RunningStep>();
  const settled = limits.map(() => 0);

  const holdsOf = (list: readonly (number | null)[]): readonly Hold[] =>
    list.flatMap((amount, at) =>
      amount === null
        ? []
        : [intents.hold({ budgetId: `${at}`, subject, amount, limit: limits[at] ?? 0 })],
    );
  /** A charge that never exceeds its hold, so no limit may ever be exceeded. */
  const chargeOf = ({ holds }: RunningStep, share: number): number =>
    Math.floor((Math.min(...holds.map(({ amount }) => amount), 200) * share) / 100);
  const charge = ({ holds }: RunningStep, spent: number): void => {
    for (const { budgetId } of holds)
      settled[Number(budgetId)] = (settled[Number(budgetId)] ?? 0) + spent;
  };

  const open = async (list: readonly (number | null)[]): Promise<void> => {
    const holds = holdsOf(list);
    const step = intents.step([user("a")], { holds });
    if ((await store.openStep(step)).opened) running.set(step.stepId, { step, attempt: 1, holds });
  };
  const settle = async (one: RunningStep, share: number): Promise<void> => {
    const usd = chargeOf(one, share);
    const attempt = attemptSettlement(one.attempt, { charge: { usd, tokens: 0 } });
    const settlement = intents.settlement(one.step, { attempt });
    const results = await Promise.all([store.settleStep(settlement), store.settleStep(settlement)]);
    expect(results.filter((result) => result.settled)).toHaveLength(1);
    charge(one, usd);
    running.delete(one.step.stepId);
  };
  const retry = async (one: RunningStep, list: readonly (number | null)[]): Promise<void> => {
    const holds = holdsOf(list);
    const usd = chargeOf(one, 50);
    const ended = attemptSettlement(one.attempt, { charge: { usd, tokens: 0 } });
    const attempt = { ...one.step.attempt, number: one.attempt + 1 };
    const result = await store.openAttempt(intents.attempt(one.step, { ended, attempt, holds }));
    if (!result.opened) return;
    charge(one, usd);
    running.set(one.step.stepId, { step: one.step, attempt: attempt.number, holds });
  };

  return {
    async execute(batch) {
      const free = [...running.values()];
      const claim = (at: number): RunningStep | undefined =>
        free.splice(at % Math.max(1, free.length), 1)[0];
      await Promise.all(
        batch.map((one) => {
          if (one.type === "open") return open(one.amounts);
          const step = claim(one.which);
          if (!step) return undefined;
          return one.type === "settle" ? settle(step, one.share) : retry(step, one.amounts);
        }),
      );
    },
    async settleAll() {
      await Promise.all([...running.values()].map((one) => settle(one, 100)));
    },
    compare: () => compareCounters(store, subject, { running: [...running.values()], settled }),
  };
}

interface Expected {
  readonly running: readonly RunningStep[];
  /** Per budget, in the order of the limits. */
  readonly settled: readonly number[];
}

async function compareCounters(store: Store, subject: string, expected: Expected): Promise<void> {
  const holds = expected.running.flatMap((one) => one.holds);
  for (const [at, limit] of limits.entries()) {
    const counters = await countersOf(store, `${at}`);
    const counter = counters.find((row) => row.subject === subject);
    const held = holds
      .filter(({ budgetId }) => budgetId === `${at}`)
      .reduce((sum, { amount }) => sum + amount, 0);
    const standing = { settled: counter?.settled ?? 0, held: counter?.held ?? 0 };
    expect(standing).toEqual({ settled: expected.settled[at], held });
    expect(standing.settled + standing.held).toBeLessThanOrEqual(limit);
  }
}
