import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { checkDump, createTestGateway, dumpStore, type TestGateway } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Duration, type GatewayOptions, parseDuration } from "../src/index.ts";
import { stores } from "./stores.ts";

const organizationId = "organization-1";

async function ask({ gateway, chat, provider }: TestGateway, content: string): Promise<void> {
  provider.reply(`answer to ${content}`);
  const answer = await gateway.fetch(chat({ messages: [{ role: "user", content }] }));
  expect(answer.status).toBe(200);
  await answer.json();
}

/** Moves only the wall clock, because leases are renewed every few seconds of monotonic time. */
function pass({ clock }: TestGateway, duration: Duration): void {
  clock.setWall(clock.now() + (parseDuration(duration) ?? 0));
}

describe.each(stores)("retention on %s", (_name, open) => {
  async function start(options: Partial<Omit<GatewayOptions, "clock">>): Promise<TestGateway> {
    const test = await createTestGateway({ store: open(), ...options });
    onTestFinished(() => test.gateway.close());
    return test;
  }

  async function leavesOf({ store }: TestGateway, kind: string): Promise<readonly unknown[]> {
    const { data } = await store.evidence.list({ organizationId }, { cursor: null, limit: 1_000 });
    return data.filter((leaf) => leaf.kind === kind).map(({ meta }): unknown => JSON.parse(meta));
  }

  it("keeps Steps, activity and transcripts by default", async () => {
    const test = await start({ maintenance: false });
    await ask(test, "Hello");
    pass(test, "400d");
    expect(await test.gateway.sweep()).toBe(0);
    expect((await test.gateway.activity.list({ organizationId })).data).toHaveLength(1);
  });

  it("removes Steps and activity after `retention.activity`, and records this in the evidence", async () => {
    const test = await start({
      maintenance: false,
      retention: { activity: "30d" },
      budgets: [{ id: "all", limit: { requests: 10 }, period: "total" }],
    });
    const { gateway, clock, store } = test;
    await ask(test, "old");
    await ask(test, "old, too");
    pass(test, "30d");
    expect(await gateway.sweep()).toBe(0);
    await ask(test, "new");
    pass(test, 1);
    const at = clock.now();
    expect(await gateway.sweep()).toBe(2);
    expect((await gateway.steps.list({ organizationId })).data).toHaveLength(1);
    expect((await gateway.activity.list({ organizationId })).data).toHaveLength(1);
    expect(await leavesOf(test, "activity.removed")).toEqual([
      expect.objectContaining({ at, before: at - 30 * 86_400_000, count: 2 }),
    ]);
    expect((await gateway.budgets.status({ id: "all" })).data).toMatchObject([{ settled: 3 }]);
    const { activity } = gateway;
    const dump = await dumpStore(store, { organizations: [organizationId], at, activity });
    expect(checkDump(dump)).toEqual([]);
  });

  it("erases transcripts even if Steps can't be removed, and reports the failure", async () => {
    const store = open();
    const failing = { ...store.steps, sweep: () => Promise.reject(new Error("no partition")) };
    const test = await createTestGateway({
      store: { ...store, steps: failing },
      maintenance: false,
      retention: { activity: "1h", transcripts: "1h" },
    });
    onTestFinished(() => test.gateway.close());
    await ask(test, "secret");
    pass(test, "2h");
    await expect(test.gateway.sweep()).rejects.toMatchObject({ code: "evidence_unavailable" });
    expect((await test.gateway.steps.list({ organizationId })).data).toHaveLength(1);
    expect(await leavesOf(test, "transcripts.erased")).toHaveLength(1);
  });

  it("removes the Steps of other organizations if one has a Step that can't be read or is open", async () => {
    const store = open();
    const steps: Store["usage"]["steps"] = (query, paging) =>
      query.organizationId === "a damaged"
        ? Promise.reject(new Error("column attempts"))
        : store.usage.steps(query, paging);
    const test = await start({
      maintenance: false,
      retention: { activity: "30d" },
      store: { ...store, usage: { ...store.usage, steps } },
    });
    const { gateway, provider } = test;
    const ask = async (key: { readonly chat: TestGateway["chat"] }, stream = false) =>
      gateway.fetch(key.chat({ stream }));
    const [damaged, waiting, other] = [
      await test.createKey({ organizationId: "a damaged" }),
      await test.createKey({ organizationId: "b waiting" }),
      await test.createKey({ organizationId: "c" }),
    ];
    for (const key of [damaged, waiting, other]) await (await ask(key)).text();
    pass(test, 1);
    const hold = provider.hold();
    const slow = ask(waiting, true);
    await hold.reached();
    pass(test, "31d");
    await expect(gateway.sweep()).rejects.toMatchObject({ code: "evidence_unavailable" });
    const { data } = await store.steps.list({ organizationId: null }, { cursor: null, limit: 9 });
    const left = data.map((step) => [step.organizationId, step.outcome]);
    expect(left.toSorted()).toEqual([
      ["a damaged", "completed"],
      ["b waiting", null],
    ]);
    await expect(gateway.rollUp()).rejects.toMatchObject({ code: "evidence_unavailable" });
    hold.release();
    await (await slow).text();
  });

  it("removes more than one chunk of Steps in one sweep", async () => {
    const test = await start({ maintenance: false, retention: { activity: "1h" } });
    for (let at = 0; at < 105; at++) await ask(test, `question ${at}`);
    pass(test, "2h");
    expect(await test.gateway.sweep()).toBe(105);
    const counts = (await leavesOf(test, "activity.removed")).map((leaf) =>
      Reflect.get(Object(leaf), "count"),
    );
    expect(counts).toEqual([100, 5]);
  });

  it("erases the content of a Session after `retention.transcripts`, and continues it (S42)", async () => {
    const test = await start({ maintenance: false, retention: { transcripts: "1d" } });
    const { gateway } = test;
    await ask(test, "a secret of ours");
    pass(test, "2d");
    expect(await gateway.sweep()).toBe(1);
    const [session] = (await gateway.sessions.list({ organizationId })).data;
    if (!session) return expect.fail("No Session found.");
    expect(await leavesOf(test, "transcripts.erased")).toEqual([
      expect.objectContaining({ sessions: [session.id] }),
    ]);
    const transcript = () => gateway.sessions.transcript({ organizationId, id: session.id });
    expect(JSON.stringify(await transcript())).not.toContain("secret");
    const answer = await gateway.fetch(
      test.chat({
        messages: [
          { role: "user", content: "a secret of ours" },
          { role: "assistant", content: "answer to a secret of ours" },
          { role: "user", content: "and then?" },
        ],
      }),
    );
    expect(Reflect.get(Object(await answer.json()), "session_id")).toBe(session.id);
    expect(JSON.stringify(await transcript())).toContain("and then?");
  });

  it("sweeps by itself while the gateway is open", async () => {
    const test = await start({ retention: { activity: "1h", transcripts: "1h" } });
    await ask(test, "Hello");
    pass(test, "1h");
    await test.clock.advance("2m");
    const isSwept = async (): Promise<boolean> =>
      (await test.gateway.steps.list({ organizationId })).data.length === 0 &&
      (await leavesOf(test, "transcripts.erased")).length === 1;
    while (!(await isSwept())) await new Promise((resolve) => setImmediate(resolve));
  });
});

it("yields to the event loop between chunks of a sweep", async () => {
  const store = memoryStore();
  let [chunks, turns] = [0, 0];
  const expiring: Store = {
    ...store,
    responses: {
      ...store.responses,
      async sweep({ limit }) {
        setImmediate(() => turns++);
        return ++chunks < 20 ? limit : 0;
      },
    },
  };
  const { gateway } = await createTestGateway({ store: expiring, maintenance: false });
  await gateway.sweep();
  expect(chunks).toBe(20);
  expect(turns).toBeGreaterThanOrEqual(19);
});
