import {
  createHourFold,
  createUsageFold,
  type HourDetail,
  hourDetails,
  hourOf,
  inDetail,
  type StepIntent,
  type Store,
  type SummaryDimension,
  type UnfoldedStep,
  type UnfoldedSteps,
  type UsageGroup,
  type UsageHour,
  usageHours,
} from "@tollgate/core/store";
import fc from "fast-check";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { correctionFor } from "./corrections.ts";
import { createIntents, type Intents } from "./intents.ts";

const hourMs = 3_600_000;
const start = Date.UTC(2026, 0, 5, 10);
const by: readonly SummaryDimension[] = ["user", "model", "outcome", "hour"];

/** Hourly sums. */
export function usageHourTests(test: ContractTest): void {
  test("adds hours and moves the mark once, even if two processes fold", async ({
    store,
    intents,
  }) => {
    await settle(store, intents, { hour: 0, model: "m", cost: 1 });
    await settle(store, intents, { hour: 1, model: "m", cost: 2 });
    const { steps, cursorOf } = await store.usage.steps({ organizationId: "acme" }, all);
    const [first, second] = steps;
    if (!first || !second) return expect.fail("Two Steps are to be folded.");
    const [mark, next] = [cursorOf(0), cursorOf(1)];
    expect(await store.usage.mark("acme")).toBe(null);
    const hours = hoursFor("a", start, [first]);
    const add = { organizationId: "acme", after: null, mark, hours };
    expect(await store.usage.add(add)).toBe(true);
    expect(await store.usage.add({ ...add, hours: hoursFor("b", start, [first]) })).toBe(false);
    expect(await store.usage.mark("acme")).toBe(mark);
    expect(await store.usage.mark("globex")).toBe(null);
    for (const detail of hourDetails)
      expect(await store.usage.hours({ organizationId: "acme", detail }, all)).toEqual({
        data: hours.filter((hour) => hour.detail === detail),
        nextCursor: null,
      });
    const rest = await store.usage.steps({ organizationId: "acme" }, { ...all, cursor: mark });
    expect(rest.steps).toEqual([second]);
    const later = { ...add, after: mark, mark: next, hours: [] };
    expect(await store.usage.add(later)).toBe(true);
    expect(await store.usage.add(later)).toBe(false);
    expect(await store.usage.mark("acme")).toBe(next);
    // A repair moves no mark.
    const repair = { ...add, after: next, mark: next, hours: hoursFor("c", start, [first]) };
    expect(await store.usage.add(repair)).toBe(true);
    expect(
      (await store.usage.hours({ organizationId: "acme", detail: "totals" }, all)).data,
    ).toHaveLength(2);
  });

  test("returns the Steps to fold oldest first, and no others", async ({ store, intents }) => {
    const other = createIntents("globex");
    await store.keys.insert(other.key());
    await settle(store, other, { hour: 0, model: "m", cost: 1 });
    for (const [at, hour] of [2, 0, 1, 1].entries())
      await settle(store, intents, { hour, model: `m${at}`, cost: 1 });
    const inOrder = ["m1", "m2", "m3", "m0"];
    const read = async (to: number | undefined, limit: number) => {
      const found: (string | undefined)[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < 9; page++) {
        const query = { organizationId: "acme", ...(to === undefined ? {} : { to }) };
        const { steps, cursorOf }: UnfoldedSteps = await store.usage.steps(query, {
          cursor,
          limit,
        });
        found.push(...steps.map(({ attempts }) => attempts.at(-1)?.model));
        if (steps.length > 0) cursor = cursorOf(steps.length - 1);
        if (steps.length < limit) return found;
      }
      return found;
    };
    for (const limit of [1, 2, 3, 4, 5]) expect(await read(undefined, limit)).toEqual(inOrder);
    expect(await read(start + 2 * hourMs, 2)).toEqual(inOrder.slice(0, 3));
  });

  test("returns the Steps to fold, however many Steps other organizations have", async ({
    store,
    intents,
  }) => {
    const other = createIntents("globex");
    await store.keys.insert(other.key());
    for (let at = 0; at < 3; at++) await settle(store, other, { hour: at, model: "m", cost: 1 });
    await settle(store, intents, { hour: 1, model: "own", cost: 1 });
    const paging = { ...all, maxScanned: 1 };
    const { steps } = await store.usage.steps({ organizationId: "acme" }, paging);
    expect(steps.map(({ attempts }) => attempts.at(-1)?.model)).toEqual(["own"]);
  });

  test("names every organization that has Steps to fold, page by page", async ({
    store,
    intents,
  }) => {
    const others = ["b", "c", "d"].map((organizationId) => createIntents(organizationId));
    for (const other of others) await store.keys.insert(other.key());
    for (const owner of [intents, ...others])
      await settle(store, owner, { hour: 1, model: "m", cost: 1 });
    const read = async (until: number): Promise<readonly string[]> => {
      const found: string[] = [];
      for (let after: string | null = ""; after !== null; ) {
        const query = { after, until, limit: 2 };
        const page: Awaited<ReturnType<typeof store.usage.unfolded>> =
          await store.usage.unfolded(query);
        found.push(...page.organizations);
        after = page.next;
      }
      return found;
    };
    expect(await read(start + 3 * hourMs)).toEqual(["acme", "b", "c", "d"]);
    const query = { organizationId: "b" };
    const { cursorOf } = await store.usage.steps(query, all);
    await store.usage.add({ ...query, after: null, mark: cursorOf(0), hours: [] });
    await settle(store, intents, { hour: 2, model: "m", cost: 1 });
    // A store may name organizations without any, too.
    expect(await read(start + 3 * hourMs)).toEqual(expect.arrayContaining(["acme", "c", "d"]));
  });

  test("selects hours by time, page by page", async ({ store }) => {
    const hours = [0, 0, 1, 2, 3].flatMap((hour, at) =>
      hoursFor(`h${at}`, start + hour * hourMs, []),
    );
    const mark = "mark";
    await store.usage.add({ organizationId: "acme", after: null, mark, hours });
    for (const detail of hourDetails) {
      const ids: string[] = [];
      let cursor: string | null = null;
      const range = { organizationId: "acme", detail, from: start, to: start + 3 * hourMs };
      do {
        const page: Awaited<ReturnType<typeof store.usage.hours>> = await store.usage.hours(range, {
          cursor,
          limit: 2,
        });
        ids.push(...page.data.map(({ id }) => id));
        cursor = page.nextCursor;
      } while (cursor !== null && ids.length < 9);
      expect(ids).toEqual(["h0", "h1", "h2", "h3"]);
      const others = { organizationId: "globex", detail };
      expect(await store.usage.hours(others, all)).toMatchObject({ data: [] });
    }
  });

  test("keeps the sums of removed Steps, and adds those that follow", async ({
    store,
    intents,
  }) => {
    const step = await settle(store, intents, { hour: 0, model: "m", cost: 7 });
    await correct(store, intents, step, 5);
    const full = () => Promise.all(hourDetails.map((detail) => fullFold(store, "acme", detail)));
    const rolled = () =>
      Promise.all(hourDetails.map((detail) => rolledFold(store, "acme", detail)));
    const before = await full();
    await foldAll(store, "acme", 10);
    const leaf = () => intents.leaf("activity.removed");
    const sweep = {
      from: "",
      at: start + 48 * hourMs,
      keep: hourMs,
      limit: 10,
      unfolded: new Map(),
      leaf,
    };
    expect(await store.steps.sweep(sweep)).toMatchObject({ removed: 1 });
    expect(await full()).toEqual([[], []]);
    expect(await rolled()).toEqual(before);
    await settle(store, intents, { hour: 50, model: "m", cost: 7 });
    const following = await full();
    expect(following).not.toEqual([[], []]);
    const all = before.map((groups, at) => inOrder([...groups, ...(following[at] ?? [])]));
    expect(await rolled()).toEqual(all);
  });

  test("adds up to the sums over all Steps, however far it has folded", async ({ store }) => {
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 14 }), async (acts) => {
        const organizationId = `organization-${++runs}`;
        const intents = createIntents(organizationId);
        await store.keys.insert(intents.key());
        const settled: StepIntent[] = [];
        for (const one of acts) {
          if (one.type === "settle") settled.push(await settle(store, intents, one));
          else if (one.type === "fold") await foldAll(store, organizationId, one.steps);
          else {
            const step = settled[one.which % settled.length];
            if (step) await correct(store, intents, step, one.cost);
          }
        }
        await expectSumsOfAllSteps(store, organizationId);
      }),
      { numRuns: 12 },
    );
  });
}

const all = { cursor: null, limit: 100 };

/** Steps open in the order of their hours, as their gateways' clocks run. */
const act = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("settle"),
      hour: fc.constant(0),
      model: fc.constantFrom("cheap", "dear"),
      cost: fc.option(fc.nat(1_000_000_000)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("correct"), which: fc.nat(20), cost: fc.nat(1_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("fold"), steps: fc.constantFrom(1, 2, 9) }),
  },
);

async function settle(
  store: Store,
  intents: Intents,
  {
    hour,
    model,
    cost,
  }: { readonly hour: number; readonly model: string; readonly cost: number | null },
): Promise<StepIntent> {
  const plain = intents.step([user(intents.id())], { at: start + hour * hourMs });
  const step = { ...plain, attempt: { ...plain.attempt, model: "cheap" } };
  await expectOpened(store.openStep(step));
  const first = intents.settlement(step).attempt;
  await store.openAttempt(
    intents.attempt(step, {
      ended: { ...first, costNanoUsd: cost, outcome: "failed" },
      attempt: { ...step.attempt, model, number: 2 },
    }),
  );
  const attempt = { number: 2, costNanoUsd: cost, timeToFirstTokenMs: 40, durationMs: 5_000 };
  await store.settleStep(intents.settlement(step, { attempt }));
  return step;
}

async function correct(
  store: Store,
  intents: Intents,
  step: StepIntent,
  costNanoUsd: number,
): Promise<void> {
  const usage = { promptTokens: 1, completionTokens: 2, totalTokens: 3, cachedTokens: 1 };
  await store.correct(correctionFor(intents, step, { usage, costNanoUsd }));
}

function hoursFor(
  id: string,
  hour: number,
  steps: readonly UnfoldedStep[],
  organizationId = "acme",
): readonly UsageHour[] {
  const fold = createHourFold();
  for (const step of steps) fold.add(step);
  return usageHours({ organizationId, hour, id }, fold.steps());
}

/** Folds the next settled Steps of an organization, up to a number. */
export async function foldAll(store: Store, organizationId: string, limit: number): Promise<void> {
  const after = await store.usage.mark(organizationId);
  const paging = { cursor: after, limit };
  const { steps, cursorOf } = await store.usage.steps({ organizationId }, paging);
  const open = steps.findIndex(({ outcome }) => outcome === null);
  const settled = open < 0 ? steps : steps.slice(0, open);
  if (settled.length === 0) return;
  const mark = cursorOf(settled.length - 1);
  const hours = [...Map.groupBy(settled, ({ openedAt }) => hourOf(openedAt))].flatMap(
    ([hour, of]) => hoursFor(`${mark} ${hour}`, hour, of, organizationId),
  );
  expect(await store.usage.add({ organizationId, after, mark, hours })).toBe(true);
}

/** The hours, and the Steps after the mark. */
async function rolledFold(
  store: Store,
  organizationId: string,
  detail: HourDetail,
): Promise<readonly UsageGroup[]> {
  const fold = createUsageFold(by);
  for (const row of (await store.usage.hours({ organizationId, detail }, all)).data)
    fold.addHour(row);
  const cursor = await store.usage.mark(organizationId);
  const { steps } = await store.usage.steps({ organizationId }, { ...all, cursor });
  for (const step of steps) fold.addStep(inDetail(detail, step));
  return inOrder(fold.groups());
}

async function fullFold(
  store: Store,
  organizationId: string,
  detail: HourDetail,
): Promise<readonly UsageGroup[]> {
  const { groups } = await store.steps.summarize({ organizationId, by }, all);
  if (detail === "callers") return inOrder(groups);
  const totals = createUsageFold(by);
  for (const {
    values: [, ...others],
    ...group
  } of groups)
    totals.addGroup({ ...group, values: ["", ...others] });
  return inOrder(totals.groups());
}

/** Both sums are those of all Steps. */
async function expectSumsOfAllSteps(store: Store, organizationId: string): Promise<void> {
  for (const detail of hourDetails)
    expect(await rolledFold(store, organizationId, detail)).toEqual(
      await fullFold(store, organizationId, detail),
    );
}

function inOrder(groups: readonly UsageGroup[]): readonly UsageGroup[] {
  return groups.toSorted((a, b) => (JSON.stringify(a.values) < JSON.stringify(b.values) ? -1 : 1));
}
