import { type Hold, type StepIntent, type Store, yieldToEventLoop } from "@tollgate/core/store";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractSubject, type ContractTest, expectOpened } from "./contract-test.ts";
import { correctionFor } from "./corrections.ts";
import type { Intents } from "./intents.ts";
import { sweepSteps } from "./retention.ts";
import { attemptSettlement } from "./settlement-intent.ts";

/** More than one chunk of any store. */
const many = 600;
/** Enough to begin in one chunk and end in another. */
const maxChanges = 20;

/** Reconciling while other calls run, of the same store or of others on the same data. */
export function reconcilingTests(test: ContractTest): void {
  test("finds no difference while Steps open, continue, settle, are corrected and are removed", (subject) =>
    reconcileWhile(subject, subject.store));

  test("lets the process do other work while it reconciles", async ({ store, intents }) => {
    await settleMany(store, intents);
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const { counters } = await store.budgets.reconcile({ limit: 9 });
    isOver = true;
    expect(counters).toBe(3);
    expect(turns).toBeGreaterThan(0);
  });
}

/** Reconciles while another store on the same data, or the same one, changes it. */
export async function reconcileWhile(
  { store: reconciling, intents }: ContractSubject,
  store: Store,
): Promise<void> {
  const settled = await settleMany(store, intents);
  // Names that a reading in their order reaches first and last.
  const owners = ["a", "acme", "z"].map((organizationId) => intents.withOwner({ organizationId }));
  for (const owner of owners)
    if (owner.owner.organizationId !== "acme") await store.keys.insert(owner.key());
  const open = await Promise.all(owners.map((owner) => openOne(store, owner, "before")));
  let changes = 0;
  const change = async (): Promise<void> => {
    while (changes < maxChanges) {
      await yieldToEventLoop();
      const at = changes++;
      const owner = owners[at % owners.length] ?? intents;
      const step = await openOne(store, owner, `subject ${at % 7}`);
      await store.openAttempt(
        owner.attempt(step, { holds: [hold(owner, "usd", `late ${at % 5}`)] }),
      );
      const { number } = step.attempt;
      const attempt = attemptSettlement(number + 1);
      if (at % 4 > 0) await store.settleStep(owner.settlement(step, { attempt }));
      // The sweep removes the first half.
      const earlier = settled[many - 1 - (at % (many / 2))];
      if (earlier) await store.correct(correctionFor(intents, earlier, { costNanoUsd: at }));
      if (at === 1) await sweepSteps({ store, intents }, { limit: many / 2 });
      if (at === 2)
        for (const [place, one] of open.entries())
          await store.settleStep((owners[place] ?? intents).settlement(one));
    }
  };
  let isOver = false;
  const changing = Promise.all([change(), change()]).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const { counters, drift } = await reconciling.budgets.reconcile({ limit: 9 });
    expect(drift).toEqual([]);
    expect(counters).toBeGreaterThanOrEqual(3);
    await yieldToEventLoop();
  }
  await changing;
  expect((await reconciling.budgets.reconcile({ limit: 9 })).drift).toEqual([]);
}

const plenty = { limit: 1_000_000, amount: 1 } as const;

function hold({ hold: create }: Intents, unit: "usd" | "tokens" | "requests", subject = ""): Hold {
  return create({ ...plenty, budgetId: unit, unit, subject });
}

async function settleMany(store: Store, intents: Intents): Promise<readonly StepIntent[]> {
  const units = ["usd", "tokens", "requests"] as const;
  const steps = Array.from({ length: many }, (_, at) =>
    intents.call({ holds: [hold(intents, units[at % 3] ?? "usd")] }),
  );
  // A store may bound its queue.
  for (let from = 0; from < many; from += 100) {
    const some = steps.slice(from, from + 100);
    await Promise.all(some.map((step) => expectOpenedCall(store, step)));
    await Promise.all(some.map((step) => store.settleStep(intents.settlement(step))));
  }
  return steps;
}

async function expectOpenedCall(store: Store, step: StepIntent): Promise<void> {
  expect(await store.openStep(step)).toMatchObject({ opened: true });
}

async function openOne(store: Store, intents: Intents, subject: string): Promise<StepIntent> {
  const holds = [hold(intents, "usd", subject), hold(intents, "requests", subject)];
  const step = intents.step([user(intents.id())], { holds });
  await expectOpened(store.openStep(step));
  return step;
}
