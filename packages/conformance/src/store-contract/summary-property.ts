import {
  createUsageFold,
  type Step,
  type Store,
  type SummaryDimension,
  type UsageSums,
} from "@tollgate/core/store";
import fc from "fast-check";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { correctionFor } from "./corrections.ts";
import { createIntents, type Intents } from "./intents.ts";

/** A Step's attempts on two models, with known or unknown costs and corrections. */
type Attempts = readonly {
  readonly model: "cheap" | "dear";
  readonly cost: number | null;
  readonly corrected: number | null;
}[];

const cost = fc.option(fc.nat(1_000_000_000));
const attempts: fc.Arbitrary<Attempts> = fc.array(
  fc.record({ model: fc.constantFrom("cheap", "dear"), cost, corrected: cost }),
  { minLength: 1, maxLength: 3 },
);
const history = fc.array(
  fc.record({ attempts, outcome: fc.constantFrom("completed", "failed", "cancelled") }),
  { maxLength: 8 },
);
const asked = fc.record({
  by: fc.subarray<SummaryDimension>(["model", "outcome", "day", "session", "connection"]),
  limit: fc.integer({ min: 1, max: 13 }),
});

/** Compares sums over random dimensions and page sizes with sums over the listed Steps. */
export function summaryPropertyTests(test: ContractTest): void {
  test("adds up to the money and tokens of all Steps, whatever the grouping", async ({ store }) => {
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(history, asked, async (steps, { by, limit }) => {
        const organizationId = `organization-${++runs}`;
        const intents = createIntents(organizationId);
        await store.keys.insert(intents.key());
        for (const step of steps) await play(store, intents, step);
        const paging = { cursor: null, limit: 100 };
        const { data } = await store.steps.list({ organizationId }, paging);
        const groups = await summed(store, { organizationId, by }, limit);
        const names = groups.map(({ values }) => JSON.stringify(values));
        expect(new Set(names).size).toBe(names.length);
        const figures = groups.map(({ sums }) => sums);
        for (const name of ["attempts", "totalTokens", "costNanoUsd", "unknownCosts"] as const)
          expect(total(figures, name), name).toBe(expected(data)[name]);
      }),
      { numRuns: 10 },
    );
  });
}

async function play(
  store: Store,
  intents: Intents,
  {
    attempts,
    outcome,
  }: { readonly attempts: Attempts; readonly outcome: Step["outcome"] & string },
): Promise<void> {
  const plain = intents.step([user(intents.id())]);
  const step = { ...plain, attempt: { ...plain.attempt, model: attempts[0]?.model ?? "cheap" } };
  await expectOpened(store.openStep(step));
  const endOf = (at: number) => ({ number: at + 1, costNanoUsd: attempts[at]?.cost ?? null });
  for (const [before, { model }] of attempts.slice(1).entries())
    await store.openAttempt(
      intents.attempt(step, {
        ended: { ...intents.settlement(step).attempt, ...endOf(before), outcome: "failed" },
        attempt: { ...step.attempt, model, number: before + 2 },
      }),
    );
  const attempt = endOf(attempts.length - 1);
  await store.settleStep(intents.settlement(step, { outcome, attempt }));
  for (const [at, { corrected: costNanoUsd }] of attempts.entries())
    if (costNanoUsd !== null)
      await store.correct(correctionFor(intents, step, { attempt: at + 1, costNanoUsd }));
}

async function summed(
  { steps }: Store,
  query: { readonly organizationId: string; readonly by: readonly SummaryDimension[] },
  limit: number,
) {
  const fold = createUsageFold(query.by);
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof steps.summarize>> = await steps.summarize(query, {
      cursor,
      limit,
    });
    for (const group of page.groups) fold.addGroup(group);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return fold.groups();
}

function total(sums: readonly UsageSums[], name: keyof UsageSums): number {
  return sums.reduce((sum, figures) => sum + figures[name], 0);
}

/** The sums over Steps as read back, with each attempt's last correction. */
function expected(steps: readonly Step[]) {
  const ends = steps.flatMap(({ attempts }) =>
    attempts.map(({ end, corrections = [] }) => corrections.at(-1) ?? end),
  );
  return {
    attempts: ends.length,
    totalTokens: ends.reduce((sum, end) => sum + (end?.usage.totalTokens ?? 0), 0),
    costNanoUsd: ends.reduce((sum, end) => sum + (end?.costNanoUsd ?? 0), 0),
    unknownCosts: ends.filter((end) => end?.costNanoUsd === null).length,
  };
}
