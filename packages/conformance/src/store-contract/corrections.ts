import type { Correction, CorrectionIntent, StepIntent, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import type { Intents } from "./intents.ts";
import { attemptSettlement } from "./settlement-intent.ts";

const organizationId = "acme";
const page = { cursor: null, limit: 9 };

/** Corrections of settled attempts: separate records that also move the counters. */
export function correctionTests(test: ContractTest): void {
  test("adds a correction to the record, and moves the settled amounts", async ({
    store,
    intents,
  }) => {
    const holds = (["requests", "tokens", "usd"] as const).map((unit) =>
      intents.hold({ budgetId: unit, unit, amount: unit === "requests" ? 1 : 100 }),
    );
    const step = await settled(store, intents, { holds });
    const before = await store.steps.get(organizationId, step.stepId);
    const up = correctionFor(intents, step, { usage: tokens(10, 20), costNanoUsd: 300 });
    expect(await store.correct(up)).toBe(true);
    expect(await standing(store, "usd", "tokens", "requests")).toEqual([300, 30, 1]);
    const down = correctionFor(intents, step, { usage: tokens(1, 1), costNanoUsd: 5 });
    expect(await store.correct(down)).toBe(true);
    expect(await standing(store, "usd", "tokens", "requests")).toEqual([5, 2, 1]);

    const corrections = [up, down].map(({ correction: { attempt, ...rest } }) => rest);
    const attempts = before?.attempts.map((attempt) => ({ ...attempt, corrections }));
    expect(await store.steps.get(organizationId, step.stepId)).toEqual({ ...before, attempts });
    expect((await store.steps.list({ organizationId: null }, page)).data).toEqual([
      { ...before, attempts },
    ]);
    const leaves = await store.evidence.list({ organizationId }, page);
    expect(leaves.data.slice(-2).map(({ meta }) => meta)).toEqual([up.leaf.meta, down.leaf.meta]);
  });

  test("leaves figures unchanged that a correction doesn't mention", async ({ store, intents }) => {
    const step = await settled(store, intents, { holds: [intents.hold()] });
    await store.correct(correctionFor(intents, step, { costNanoUsd: 80 }));
    await store.correct(correctionFor(intents, step, { usage: tokens(2, 3) }));
    const [attempt] = (await store.steps.get(organizationId, step.stepId))?.attempts ?? [];
    const { usage } = attemptSettlement(1);
    expect(attempt?.corrections).toMatchObject([
      { usage, costNanoUsd: 80 },
      { usage: tokens(2, 3), costNanoUsd: 80 },
    ]);
    expect(await standing(store, "budget")).toEqual([80]);
  });

  test("writes a correction once, however often and concurrently it is sent", async ({
    store,
    intents,
  }) => {
    const step = await settled(store, intents, { holds: [intents.hold()] });
    const once = correctionFor(intents, step, { costNanoUsd: 100 });
    const results = await Promise.all(Array.from({ length: 5 }, () => store.correct(once)));
    // A store that lost the response of its own commit may return false for every call, but writes once.
    expect(results.filter(Boolean).length).toBeLessThanOrEqual(1);
    expect(await store.correct(once)).toBe(false);
    const others = [7, 40, 1_000].map((costNanoUsd) =>
      correctionFor(intents, step, { costNanoUsd }),
    );
    await Promise.all(others.map((other) => store.correct(other)));
    const [attempt] = (await store.steps.get(organizationId, step.stepId))?.attempts ?? [];
    expect(attempt?.corrections).toHaveLength(4);
    expect(await standing(store, "budget")).toEqual([attempt?.corrections?.at(-1)?.costNanoUsd]);
  });

  test("ignores a correction computed from outdated corrections", async ({ store, intents }) => {
    const step = await settled(store, intents, { holds: [intents.hold()] });
    const computed = (costNanoUsd: number, after: number) => {
      const intent = correctionFor(intents, step, { costNanoUsd });
      return { ...intent, correction: { ...intent.correction, after } };
    };
    expect(await store.correct(computed(70, 1))).toBe(false);
    expect(await store.correct(computed(80, 0))).toBe(true);
    expect(await store.correct(computed(90, 0))).toBe(false);
    expect(await standing(store, "budget")).toEqual([80]);
    const [attempt] = (await store.steps.get(organizationId, step.stepId))?.attempts ?? [];
    expect(attempt?.corrections).toMatchObject([{ costNanoUsd: 80 }]);
    expect(attempt?.corrections?.[0]).not.toHaveProperty("after");
    expect(await store.correct(computed(90, 1))).toBe(true);
    expect(await standing(store, "budget")).toEqual([90]);
  });

  test("moves only the holds the corrected attempt was charged to", async ({ store, intents }) => {
    const first = intents.hold({ budgetId: "first" });
    const step = intents.step([user("a")], { holds: [first] });
    await expectOpened(store.openStep(step));
    // The second attempt keeps the first one's holds, the third takes its own, the fourth has none.
    const fallbacks = [intents.decision(), intents.decision()];
    const plans = [null, [intents.hold({ budgetId: "third" })], []];
    for (const [at, holds] of plans.entries()) {
      const ended = attemptSettlement(at + 1, { outcome: "failed" });
      const decisionId = fallbacks[at - 1]?.id ?? step.attempt.decisionId;
      const attempt = { ...step.attempt, number: at + 2, decisionId };
      await store.openAttempt(intents.attempt(step, { ended, attempt, holds }));
    }
    await store.settleStep(intents.settlement(step, { attempt: attemptSettlement(4) }));
    expect(await standing(store, "first", "third")).toEqual([120, 60]);
    for (const [attempt, expected] of [
      [1, [121, 60]],
      [2, [122, 60]],
      [3, [122, 61]],
      [4, [122, 61]],
    ] as const) {
      await store.correct(correctionFor(intents, step, { attempt, costNanoUsd: 61 }));
      expect(await standing(store, "first", "third")).toEqual(expected);
    }
    expect(await store.budgets.reconcile({ limit: 9 })).toEqual({ counters: 2, drift: [] });
  });

  test("rejects an impossible correction and writes nothing", async ({ store, intents }) => {
    const done = await settled(store, intents, { holds: [intents.hold()] });
    const running = intents.step([user("b")]);
    await expectOpened(store.openStep(running));
    const before = await store.evidence.list({ organizationId }, page);
    const wrong = { name: "GatewayError", code: "invalid_argument" };
    const missing = { name: "GatewayError", code: "step_not_found" };
    const onDone = correctionFor(intents, done, { costNanoUsd: 1 });
    for (const [intent, error] of [
      [correctionFor(intents, running, { costNanoUsd: 1 }), wrong],
      [correctionFor(intents, done, { attempt: 2, costNanoUsd: 1 }), wrong],
      [correctionFor(intents, done, { attempt: 0, costNanoUsd: 1 }), wrong],
      [{ ...onDone, stepId: "nothing" }, missing],
      [{ ...onDone, organizationId: "globex" }, missing],
    ] as const)
      await expect(store.correct(intent)).rejects.toMatchObject(error);
    expect(await standing(store, "budget")).toEqual([60]);
    expect(await store.evidence.list({ organizationId }, page)).toEqual(before);
  });

  test("corrects an attempt at most 100 times", async ({ store, intents }) => {
    const step = await settled(store, intents, {});
    for (let at = 0; at < 100; at++)
      await store.correct(correctionFor(intents, step, { costNanoUsd: at }));
    const further = correctionFor(intents, step, { costNanoUsd: 100 });
    await expect(store.correct(further)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("keeps a counter's ledger when its Steps are removed", async ({ store, intents }) => {
    const step = await settled(store, intents, { holds: [intents.hold()] });
    await store.correct(correctionFor(intents, step, { costNanoUsd: 90 }));
    const at = intents.now() + 86_400_000;
    const leaf = () => intents.leaf("activity.removed");
    const swept = await store.steps.sweep({
      from: "",
      at,
      keep: 1_000,
      limit: 9,
      unfolded: new Map(),
      leaf,
    });
    expect(swept.removed).toBe(1);
    expect(await store.steps.get(organizationId, step.stepId)).toBeNull();
    expect(await standing(store, "budget")).toEqual([90]);
    expect(await store.budgets.reconcile({ limit: 9 })).toEqual({ counters: 1, drift: [] });
  });

  test("keeps a counter between 0 and the largest safe integer", async ({ store, intents }) => {
    const most = Number.MAX_SAFE_INTEGER;
    const soft = { mode: "soft", amount: 0 } as const;
    const step = await settled(store, intents, { holds: [intents.hold(soft)] });
    await settled(store, intents, { holds: [intents.hold(soft)] });
    await store.correct(correctionFor(intents, step, { costNanoUsd: most }));
    expect(await standing(store, "budget")).toEqual([most]);
    await store.correct(correctionFor(intents, step, { costNanoUsd: 0 }));
    expect(await standing(store, "budget")).toEqual([0]);
  });
}

function tokens(promptTokens: number, completionTokens: number): Correction["usage"] {
  return { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens };
}

async function settled(
  store: Store,
  intents: Intents,
  overrides: Parameters<Intents["step"]>[1],
): Promise<StepIntent> {
  const step = intents.step([user(intents.id())], overrides);
  await expectOpened(store.openStep(step));
  await store.settleStep(intents.settlement(step));
  return step;
}

export function correctionFor(
  intents: Intents,
  step: StepIntent,
  overrides: Partial<CorrectionIntent["correction"]>,
): CorrectionIntent {
  const plain = { attempt: 1, usage: null, costNanoUsd: null, actor: "ops", reason: "an invoice" };
  return {
    organizationId: step.owner.organizationId,
    stepId: step.stepId,
    correction: { id: intents.id(), at: intents.now(), ...plain, ...overrides },
    leaf: intents.leaf("correction"),
  };
}

/** The settled amount of each budget's only counter. */
async function standing(store: Store, ...budgetIds: readonly string[]): Promise<unknown> {
  const pages = await Promise.all(
    budgetIds.map((budgetId) => store.budgets.counters({ budgetId }, page)),
  );
  return pages.map(({ data }) => data[0]?.settled);
}
