import type { StepIntent, SummaryQuery, UsageGroup } from "@tollgate/core/store";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractSubject, type ContractTest, expectOpened } from "./contract-test.ts";
import { correctionFor } from "./corrections.ts";

const tenant = { organizationId: "acme" };
const whole = { cursor: null, limit: 100 };
/** The usage and cost of one attempt of the suite. */
const one = { promptTokens: 4, completionTokens: 3, totalTokens: 7, costNanoUsd: 60 };

/** Sums over Steps and their attempts. */
export function summaryTests(test: ContractTest): void {
  test("returns no group without Steps", async ({ store }) => {
    const page = await store.steps.summarize({ ...tenant, by: [] }, whole);
    expect(page).toEqual({ groups: [], nextCursor: null });
  });

  test("counts each attempt with its model and account, and its Step once per group", async (subject) => {
    await fallBack(subject);
    expect(await figures(subject, { by: ["model"] })).toEqual({
      '["sim/vendor/echo"]': { ...one, steps: 1, attempts: 1 },
      '["other/v/m"]': { ...doubled, steps: 1, attempts: 2 },
    });
    expect(await figures(subject, { by: [] })).toEqual({
      "[]": { ...tripled, steps: 1, attempts: 3 },
    });
    expect(await figures(subject, { by: [], gateway: ["other"] })).toEqual({
      "[]": { ...doubled, steps: 1, attempts: 2 },
    });
    for (const own of [{ connection: ["customer"] }, { modelPatterns: ["*/v/*", "no/no/no"] }])
      expect(await figures(subject, { by: [], ...own })).toEqual({
        "[]": { ...doubled, steps: 1, attempts: 2 },
      });
    expect(await figures(subject, { by: ["host"], host: ["h"] })).toEqual({
      '["h"]': { ...one, steps: 1, attempts: 1 },
    });
    expect(await figures(subject, { by: [], model: ["unheard"] })).toEqual({});
  });

  test("groups Steps by each of their dimensions", async (subject) => {
    const { store, intents } = subject;
    const bob = intents.withOwner({ userId: "bob", keyId: "key-2" });
    await store.keys.insert(bob.key({ label: "old" }));
    const late = Date.UTC(2026, 1, 28, 23, 59, 59, 999);
    const step = bob.step([user("a")], { source: "app", dataClass: "D2_CONFIDENTIAL", at: late });
    const { sessionId } = await expectOpened(store.openStep(step));
    await store.steps.get("acme", step.stepId);
    await store.settleStep(bob.settlement(step, { outcome: "failed" }));
    const values = async (by: SummaryQuery["by"][number]): Promise<unknown> =>
      (await store.steps.summarize({ ...tenant, by: [by] }, whole)).groups[0]?.values[0];
    const expected = {
      organization: "acme",
      user: "bob",
      key: "key-2",
      session: sessionId,
      source: "app",
      dataClass: "D2_CONFIDENTIAL",
      day: "2026-02-28",
      outcome: "failed",
      gateway: "sim",
      vendor: "vendor",
      model: "sim/vendor/echo",
      connection: "platform",
      host: "upstream.example",
    } as const;
    for (const by of dimensions) expect(await values(by), by).toBe(expected[by]);
    const { groups } = await store.steps.summarize({ ...tenant, by: ["key", "outcome"] }, whole);
    expect(groups).toMatchObject([{ values: ["key-2", "failed"], keyLabel: "old" }]);
  });

  test("counts unknown, estimated and running attempts separately", async (subject) => {
    const { store, intents } = subject;
    await settled(subject, { costNanoUsd: null, usageBasis: "estimated", costBasis: "estimated" });
    const usage = { ...one, promptTokens: 9, totalTokens: 12, cachedTokens: 5, reasoningTokens: 2 };
    const written = { cacheWriteTokens: 3, cacheWrite1hTokens: 1, imageOutputTokens: 1 };
    await settled(subject, { usage: { ...usage, ...written }, durationMs: 1_000 });
    await expectOpened(store.openStep(intents.step([user("open")])));
    const { groups } = await store.steps.summarize({ ...tenant, by: ["outcome"] }, whole);
    expect(groups.map(({ values, sums }) => [values[0], sums])).toEqual([
      ["open", { ...zero, steps: 1, attempts: 1 }],
      [
        "completed",
        {
          ...zero,
          ...written,
          steps: 2,
          attempts: 2,
          promptTokens: 13,
          completionTokens: 6,
          totalTokens: 19,
          cachedTokens: 5,
          reasoningTokens: 2,
          costNanoUsd: 60,
          unknownCosts: 1,
          estimated: 1,
          toolCalls: 2,
          durationMs: 1_120,
        },
      ],
    ]);
  });

  test("adds up to the same sums for any page size, and applies filters", async (subject) => {
    const { store } = subject;
    const steps = [];
    for (let at = 0; at < 7; at++) steps.push(await settled(subject, { costNanoUsd: 10 ** at }));
    for (const limit of [1, 2, 3, 7, 8]) {
      let [cursor, pages, cost]: [string | null, number, number] = [null, 0, 0];
      do {
        const page: Awaited<ReturnType<typeof store.steps.summarize>> = await store.steps.summarize(
          { ...tenant, by: ["day"] },
          { cursor, limit },
        );
        cost += page.groups.reduce((sum, { sums }) => sum + sums.costNanoUsd, 0);
        cursor = page.nextCursor;
        pages++;
      } while (cursor !== null && pages < 10);
      expect([pages, cost]).toEqual([Math.ceil(7 / limit), 1_111_111]);
    }
    const third = steps[2];
    const from = { from: third?.at ?? 0 };
    expect(await figures(subject, { by: [], ...from })).toMatchObject({ "[]": { steps: 5 } });
    for (const none of [{ userId: ["bob"] }, { outcome: ["open" as const] }, { to: 1 }])
      expect(await figures(subject, { by: [], ...none })).toEqual({});
  });

  test("counts corrected figures instead of recorded ones", async (subject) => {
    const { store, intents } = subject;
    const step = await settled(subject, {});
    const usage = { promptTokens: 1, completionTokens: 2, totalTokens: 3 };
    for (const costNanoUsd of [1_000, 55])
      await store.correct(correctionFor(intents, step, { usage, costNanoUsd }));
    expect(await figures(subject, { by: [] })).toEqual({
      "[]": { steps: 1, attempts: 1, ...usage, costNanoUsd: 55 },
    });
  });

  test("rejects a sum that would not be exact", async (subject) => {
    await settled(subject, { costNanoUsd: Number.MAX_SAFE_INTEGER });
    expect(await figures(subject, { by: [] })).toMatchObject({
      "[]": { costNanoUsd: Number.MAX_SAFE_INTEGER },
    });
    await settled(subject, { costNanoUsd: 1 });
    await expect(subject.store.steps.summarize({ ...tenant, by: [] }, whole)).rejects.toMatchObject(
      { code: "invalid_argument" },
    );
  });

  test("lists organizations that ever had a key, by the bytes of their ids", async ({
    store,
    intents,
  }) => {
    for (const organizationId of ["b", "\u{1f600}", "\uffee", "B"])
      await store.keys.insert(intents.withOwner({ organizationId }).key());
    expect(await store.keys.organizations("", 9)).toEqual([
      "B",
      "acme",
      "b",
      "\uffee",
      "\u{1f600}",
    ]);
    expect(await store.keys.organizations("acme", 2)).toEqual(["b", "\uffee"]);
    expect(await store.keys.organizations("\u{1f600}", 9)).toEqual([]);
  });
}

const times = (factor: number) =>
  Object.fromEntries(Object.entries(one).map(([name, value]) => [name, factor * value]));
const doubled = times(2);
const tripled = times(3);

const zero = {
  promptTokens: 0,
  completionTokens: 0,
  totalTokens: 0,
  cachedTokens: 0,
  reasoningTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  audioInputTokens: 0,
  audioOutputTokens: 0,
  imageInputTokens: 0,
  imageOutputTokens: 0,
  costNanoUsd: 0,
  unknownCosts: 0,
  estimated: 0,
  toolCalls: 0,
  durationMs: 0,
};

const dimensions = [
  "organization",
  "user",
  "key",
  "session",
  "source",
  "dataClass",
  "day",
  "outcome",
  "gateway",
  "vendor",
  "model",
  "connection",
  "host",
] as const;

/** A Step with one attempt on one model and two on another, the last with a different host. */
async function fallBack({ store, intents }: ContractSubject): Promise<void> {
  const step = intents.step([user("a")]);
  await expectOpened(store.openStep(step));
  const other = { gateway: "other", vendor: "v", model: "m", connection: "customer" } as const;
  for (const number of [2, 3])
    await store.openAttempt(
      intents.attempt(step, {
        ended: { ...intents.settlement(step).attempt, number: number - 1, outcome: "failed" },
        attempt: { ...step.attempt, ...other, number },
      }),
    );
  await store.settleStep(intents.settlement(step, { attempt: { number: 3, host: "h" } }));
}

type AttemptOverrides = NonNullable<
  NonNullable<Parameters<ContractSubject["intents"]["settlement"]>[1]>["attempt"]
>;

async function settled(
  { store, intents }: ContractSubject,
  attempt: AttemptOverrides,
): Promise<StepIntent> {
  const step = intents.step([user("a")]);
  await expectOpened(store.openStep(step));
  await store.settleStep(intents.settlement(step, { attempt }));
  return step;
}

/** The figures that the tests compare, by the values of each group. */
async function figures(
  { store }: ContractSubject,
  query: Omit<SummaryQuery, "organizationId">,
): Promise<Readonly<Record<string, object>>> {
  const { groups } = await store.steps.summarize({ ...tenant, ...query }, whole);
  return Object.fromEntries(groups.map((group) => [JSON.stringify(group.values), shown(group)]));
}

function shown({ sums }: UsageGroup): object {
  const { steps, attempts, promptTokens, completionTokens, totalTokens, costNanoUsd } = sums;
  return { steps, attempts, promptTokens, completionTokens, totalTokens, costNanoUsd };
}
