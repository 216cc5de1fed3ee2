import { createRandomIds, type StepFilter, type SummaryDimension } from "@tollgate/core";
import { hourDetails, type Store, type Sweep, usageHours } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, type ManualClock, manualClock } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";

describe.each(stores)("hourly sums on %s", (name, open) => {
  it("are the same as sums over Steps, before and after Steps are added to them", async () => {
    const { store, reads } = counting(open());
    const clock = manualClock();
    const test = await createTestGateway({ store, clock });
    const { gateway, provider, key } = test;
    const { organizationId } = key;
    const bob = await test.createKey({ userId: "bob", label: "bob's" });
    for (let hour = 0; hour < 4; hour++) {
      await (await gateway.fetch(test.chat({ model: `test/tollgate/scripted` }))).text();
      if (hour === 1) provider.fail(new Error("down"), { afterEvents: 1 });
      await clock.until(gateway.fetch(bob.chat()).then((answer) => answer.text()));
      skip(clock, 1);
    }
    const [first] = (await gateway.steps.list({ organizationId, user: "bob" })).data;
    const correct = { organizationId, id: first?.id ?? "", reason: "invoice" };
    await gateway.steps.correct({ ...correct, costNanoUsd: 3 });
    const begun = Date.parse(first?.openedAt ?? "");
    const ranges = [{}, from(begun, -2), { ...from(begun, -3), to: from(begun, -1).from }];
    const filters = [{}, { user: "bob" }, { outcome: "completed" }, { model: "*/*/scripted" }];
    const asked = ranges.flatMap((range) =>
      filters.map((filter): StepFilter => ({ ...range, ...filter, organizationId }) as StepFilter),
    );
    const by: SummaryDimension[] = ["user", "key", "model", "outcome", "day", "hour"];
    const all = () => Promise.all(asked.map((filter) => gateway.steps.summarize(filter, by)));
    const before = await all();
    expect(before[0]?.length).toBeGreaterThan(4);
    expect(await gateway.rollUp()).toBeGreaterThan(0);
    reads.steps = 0;
    expect(await all()).toEqual(before);
    expect(reads.steps).toBe(0);
    await gateway.steps.correct({ ...correct, costNanoUsd: 50 });
    const host = await gateway.steps.summarize({ organizationId }, ["host"]);
    expect(reads.steps).toBeGreaterThan(0);
    const whole = await gateway.steps.summarize({ organizationId }, []);
    expect(whole[0]?.costNanoUsd).toBe(host.reduce((sum, row) => sum + row.costNanoUsd, 0));
    const total = before[0]?.reduce((sum, row) => sum + row.costNanoUsd, 0) ?? 0;
    expect(whole[0]?.costNanoUsd).toBe(total + 47);
  });

  it("are compared with the Steps, and repaired", async () => {
    const store = open();
    const clock = manualClock();
    const { gateway, chat, key } = await createTestGateway({ store, clock });
    const { organizationId } = key;
    for (let step = 0; step < 3; step++) await (await gateway.fetch(chat())).text();
    const [first] = (await gateway.steps.list({ organizationId })).data;
    const correct = { organizationId, id: first?.id ?? "", reason: "invoice" };
    await gateway.steps.correct({ ...correct, costNanoUsd: 3 });
    skip(clock, 3);
    await (await gateway.fetch(chat())).text();
    await gateway.rollUp();
    await gateway.steps.correct({ ...correct, costNanoUsd: 50 });
    const summary = () => gateway.steps.summarize({ organizationId }, ["model", "hour"]);
    const before = await summary();
    const reconciled = { steps: 3, differences: [], isCut: false, repaired: 0 };
    expect(await gateway.reconcileUsage({ organizationId })).toEqual(reconciled);
    const paging = { cursor: null, limit: 9 };
    const pages = hourDetails.map((detail) =>
      store.usage.hours({ organizationId, detail }, paging),
    );
    const data = (await Promise.all(pages)).flatMap((page) => page.data);
    const mark = (await store.usage.mark(organizationId)) ?? "";
    const twice = data.map((row) => ({ ...row, id: `${row.id} again` }));
    await store.usage.add({ organizationId, after: mark, mark, hours: twice });
    expect(await summary()).not.toEqual(before);
    const hour = `${first?.openedAt.slice(0, 13)}:00:00.000Z`;
    const byCaller = { hour, keyId: key.id, missing: { steps: -3 } };
    const total = { hour, keyId: "", missing: { steps: -3 } };
    for (const options of [
      undefined,
      {},
      { organizationId, repair: "no" },
      { organizationId, user: "ada" },
    ])
      await expect(Reflect.apply(gateway.reconcileUsage, gateway, [options])).rejects.toMatchObject(
        { code: "invalid_argument" },
      );
    const found = await gateway.reconcileUsage({ organizationId });
    expect(found).toMatchObject({ steps: 3, differences: [byCaller, total] });
    expect((await gateway.reconcileUsage({ organizationId, repair: true })).repaired).toBe(2);
    expect(await summary()).toEqual(before);
    expect(await gateway.reconcileUsage({ organizationId })).toEqual(reconciled);
  });

  it("keep what retention removes", async () => {
    const store = open();
    const clock = manualClock();
    const test = await createTestGateway({ store, clock, retention: { activity: "1d" } });
    const { gateway, chat, key } = test;
    const { organizationId } = key;
    for (let step = 0; step < 3; step++) await (await gateway.fetch(chat())).text();
    const before = await gateway.steps.summarize({ organizationId }, ["model", "key"]);
    skip(clock, 25);
    await gateway.sweep();
    expect((await gateway.steps.list({ organizationId })).data).toEqual([]);
    expect(await gateway.steps.summarize({ organizationId }, ["model", "key"])).toEqual(before);
    expect(before[0]?.steps).toBe(3);
  });

  it("keep Steps that aren't added yet when the gateway closes", async () => {
    const store = open();
    const swept: Sweep[] = [];
    const closing = Promise.withResolvers<void>();
    const unfolded: Store["usage"]["unfolded"] = (query) => {
      closing.resolve();
      return store.usage.unfolded(query);
    };
    const sweep: Store["steps"]["sweep"] = (request) => {
      swept.push(request);
      return store.steps.sweep(request);
    };
    const clock = manualClock();
    const { gateway, chat } = await createTestGateway({
      store: { ...store, usage: { ...store.usage, unfolded }, steps: { ...store.steps, sweep } },
      clock,
      retention: { activity: "30s" },
    });
    await (await gateway.fetch(chat())).text();
    const closed = closing.promise.then(() => gateway.close());
    await clock.until(closed);
    expect(swept).toEqual([]);
  });

  it("wait for open Steps, and neither lose nor repeat a Step of several processes (A3)", async () => {
    const store = open();
    const clock = manualClock();
    const test = await createTestGateway({ store, clock });
    const { gateway, provider, chat, key } = test;
    const { organizationId } = key;
    const another = await createTestGateway({ store, clock, ids: createRandomIds() });
    await (await gateway.fetch(chat())).text();
    const hold = provider.hold();
    const slow = gateway.fetch(chat({ stream: true }));
    await hold.reached();
    await (await another.gateway.fetch(another.chat())).text();
    const rows = async () =>
      (await store.usage.hours({ organizationId, detail: "totals" }, { cursor: null, limit: 9 }))
        .data;
    skip(clock, 3);
    await Promise.all([gateway.rollUp(), another.gateway.rollUp()]);
    expect(await gateway.steps.summarize({ organizationId }, [])).toMatchObject([{ steps: 3 }]);
    hold.release();
    await (await slow).text();
    await Promise.all([gateway.rollUp(), another.gateway.rollUp(), gateway.rollUp()]);
    expect((await rows()).length).toBeGreaterThan(0);
    // Grouped by host, the Steps themselves are added up.
    const ofHosts = await gateway.steps.summarize({ organizationId }, ["host"]);
    const completionTokens = ofHosts.reduce((sum, row) => sum + row.completionTokens, 0);
    expect(await gateway.steps.summarize({ organizationId }, [])).toMatchObject([
      { steps: 3, attempts: 3, completionTokens },
    ]);
  });

  it("are brought up to date without a look at organizations that have nothing to add", async () => {
    if (name === "memoryStore") return;
    const store = open();
    let reads = 0;
    const steps: Store["usage"]["steps"] = (...asked) => {
      reads++;
      return store.usage.steps(...asked);
    };
    const clock = manualClock();
    const usage = { ...store.usage, steps };
    const { gateway, chat } = await createTestGateway({ store: { ...store, usage }, clock });
    for (const organizationId of ["org 1", "org 2"])
      await gateway.keys.create({ organizationId, userId: "ada", label: "l" });
    const rollUp = async () => ({ folded: await gateway.rollUp(), reads });
    await (await gateway.fetch(chat())).text();
    skip(clock, 2);
    expect(await rollUp()).toEqual({ folded: 1, reads: 1 });
    expect(await rollUp()).toEqual({ folded: 0, reads: 1 });
    await (await gateway.fetch(chat())).text();
    expect(await rollUp()).toEqual({ folded: 0, reads: 1 });
    skip(clock, 2);
    expect(await rollUp()).toEqual({ folded: 1, reads: 2 });
  });

  it("are brought up to date in turns between which other work runs", async () => {
    const store = open();
    /** How many pages of organizations were looked at, and how many organizations were folded, in each turn. */
    const turns = [0];
    const count = <Result>(work: () => Result): Result => {
      turns.push((turns.pop() ?? 0) + 1);
      return work();
    };
    const usage: Store["usage"] = {
      ...store.usage,
      unfolded: (query) => count(() => store.usage.unfolded({ ...query, limit: 4 })),
      add: (folded) => count(() => store.usage.add(folded)),
    };
    const clock = manualClock();
    const test = await createTestGateway({ store: { ...store, usage }, clock });
    const { gateway } = test;
    for (let at = 0; at < 12; at++) {
      const { chat } = await test.createKey({ organizationId: `org ${at}` });
      await (await gateway.fetch(chat())).text();
    }
    skip(clock, 2);
    let isOver = false;
    const next = (): void => {
      if (isOver) return;
      turns.push(0);
      setImmediate(next);
    };
    setImmediate(next);
    expect(await gateway.rollUp()).toBe(12);
    isOver = true;
    expect(turns.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(12 + 4);
    // The first organization of a page is folded in the page's turn.
    expect(Math.max(...turns)).toBeLessThanOrEqual(2);
  });

  it("give a series by hour or day, with how long attempts took", async () => {
    const clock = manualClock();
    const test = await createTestGateway({ store: open(), clock });
    const { gateway, chat, key, provider } = test;
    const { organizationId } = key;
    for (const delay of ["20ms", "10s", "1ms"] as const) {
      provider.reply({ text: "OK", delay });
      await clock.until(gateway.fetch(chat()).then((answer) => answer.text()));
      skip(clock, 2);
    }
    const expected = (await gateway.steps.list({ organizationId })).data
      .map(({ openedAt }) => `${openedAt.slice(0, 13)}:00:00.000Z`)
      .reverse();
    for (let round = 0; round < 2; round++) {
      const series = await gateway.steps.series(
        { organizationId },
        { bucket: "hour", by: "model" },
      );
      expect(series.map(({ hour }) => hour)).toEqual(expected);
      expect(series).toMatchObject(
        expected.map(() => ({ steps: 1, model: "test/tollgate/scripted" })),
      );
      const taken = series.map(({ latencies }) => latencies.duration.indexOf(1));
      expect(taken).toEqual([2, 11, 0]);
      const days = await gateway.steps.series({ organizationId }, { bucket: "day" });
      expect(days.reduce((sum, { steps }) => sum + steps, 0)).toBe(3);
      await gateway.rollUp();
    }
    const wrong: object = { bucket: "week" };
    await expect(
      Reflect.apply(gateway.steps.series, gateway.steps, [{ organizationId }, wrong]),
    ).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

it("refuses a series with too many rows before it has read them all", async () => {
  const store = memoryStore();
  let pages = 0;
  const users = Array.from({ length: 1_000 }, (_, at) => `user-${at}`);
  const hours: Store["usage"]["hours"] = async (_query, { cursor }) => {
    pages++;
    const openedAt = Number(cursor) * hourMs;
    const step = { organizationId: "acme", keyId: "key", keyLabel: "label", openedAt, count: 1 };
    const names = { source: "api", dataClass: "D1", outcome: "completed" } as const;
    const model = { gateway: "test", vendor: "tollgate", model: "m" };
    const places = [{ ...model, connection: "platform", figures: [1, 1] }] as const;
    const folded = users.map((userId) => ({ ...step, ...names, userId, places }));
    const row = { organizationId: "acme", hour: openedAt, id: `${openedAt}` };
    const data = usageHours(row, folded).filter(({ detail }) => detail === "callers");
    return { data, nextCursor: pages < 100 ? `${pages}` : null };
  };
  const usage = { ...store.usage, hours, mark: async () => "mark" };
  const { gateway } = await createTestGateway({ store: { ...store, usage } });
  const series = gateway.steps.series({ organizationId: "acme" }, { bucket: "hour", by: "user" });
  await expect(series).rejects.toMatchObject({ code: "invalid_argument", param: "by" });
  expect(pages).toBe(11);
});

const hourMs = 3_600_000;

/** Puts the clock forward without running timers. */
function skip(clock: ManualClock, hours: number): void {
  clock.setWall(clock.now() + hours * hourMs);
}

function from(at: number, hours: number): { readonly from: string } {
  return { from: new Date(at + hours * hourMs + 1_000).toISOString() };
}

/** Counts the pages of Steps that summaries read. */
function counting(store: Store) {
  const reads = { steps: 0 };
  const summarize: Store["steps"]["summarize"] = (query, paging) => {
    if (query.from === undefined && query.to === undefined) reads.steps++;
    return store.steps.summarize(query, paging);
  };
  return { reads, store: { ...store, steps: { ...store.steps, summarize } } };
}
