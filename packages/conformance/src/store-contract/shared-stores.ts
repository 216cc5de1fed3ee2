import type { Store } from "@tollgate/core/store";
import { expect, it } from "vitest";
import { countersOf } from "./budgets.ts";
import { assistant, contentOf, hex, sha256, user } from "./chain.ts";
import { sharedCheckpointTests } from "./checkpoints.ts";
import { sealed } from "./connections.ts";
import { expectOpened } from "./contract-test.ts";
import { createConversation } from "./conversation.ts";
import { createIntents } from "./intents.ts";
import { sharedKeyWithoutSecretTests } from "./keys-without-secret.ts";
import { reconcileWhile } from "./reconciling.ts";
import { removals, sweepSteps, sweepTranscripts } from "./retention.ts";
import { type SharedTest, sharedResponseTests } from "./shared-responses.ts";
import { writeSkewTests } from "./write-skew.ts";

/** A store whose data can be opened by more stores, at the same time or after it is closed. */
export interface OpenedSharedStore {
  readonly store: Store;
  /** Another store on the same data, as another process would open it. */
  another(): Promise<Store>;
}

/** Several stores on the same data, and the same data after all of them are closed. */
export function sharedStoreTests(open: () => Promise<OpenedSharedStore>): void {
  const test = createSharedTest(open);
  sharedResponseTests(test);
  sharedKeyWithoutSecretTests(test);
  sharedRetentionTests(test);
  sharedCheckpointTests(test);
  writeSkewTests((title, run) =>
    test(title, async ({ store, intents, another }) =>
      run({ stores: [store, await another(), await another()], intents }),
    ),
  );

  test("keeps all data when the store is closed and opened again", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    const { intent, sessionId } = await exchange([user("\u0000a\u{1f600}")], [assistant("b")]);
    const holds = [intents.hold()];
    const open = intents.step([user("open")], { holds });
    await expectOpened(store.openStep(open));
    await store.connections.set({ connection: sealed(), leaf: intents.leaf("connection.set") });
    const before = await everything(store);
    await store.close();
    const reopened = await subject.another();
    await reopened.migrate();
    expect(await everything(reopened)).toEqual(before);
    const parts = await reopened.sessions.transcript("acme", sessionId);
    expect(hex(parts?.[0]?.content ?? undefined)).toBe(hex(contentOf([user("\u0000a\u{1f600}")])));
    expect(await reopened.settleStep(intents.settlement(intent))).toMatchObject({ settled: false });
    const settlement = intents.settlement(open, { outcome: "interrupted" });
    expect(await reopened.settleStep(settlement)).toMatchObject({ settled: true });
    expect(await countersOf(reopened, "budget")).toMatchObject([{ settled: 60, held: 0 }]);
  });

  test("finds no difference between counters and ledger while another store writes", async (subject) =>
    reconcileWhile(subject, await subject.another()));

  test("lets any number of stores migrate at once", async ({ store, another }) => {
    const stores = [store, await another(), await another()];
    await Promise.all(stores.flatMap((one) => [one.migrate(), one.migrate()]));
  });

  test("enforces a hard budget across stores", async ({ store, intents, another }) => {
    const stores = [store, await another(), await another()];
    const holds = [intents.hold({ limit: 50, amount: 1, unit: "requests" })];
    const steps = Array.from({ length: 120 }, (_, at) => intents.step([user(`${at}`)], { holds }));
    const openings = await Promise.all(
      steps.map((step, at) => (stores[at % stores.length] ?? store).openStep(step)),
    );
    expect(openings.filter((opening) => opening.opened)).toHaveLength(50);
    expect(await countersOf(store, "budget")).toMatchObject([{ settled: 0, held: 50 }]);
  });

  test("accepts exactly one of several concurrent settlements", async ({
    store,
    intents,
    another,
  }) => {
    const stores = [store, await another(), await another()];
    const step = intents.step([user("a")], { holds: [intents.hold()] });
    await expectOpened(store.openStep(step));
    const results = await Promise.all(
      stores.map((one) => one.settleStep(intents.settlement(step, { reply: [assistant("b")] }))),
    );
    expect(results.filter(({ settled }) => settled)).toHaveLength(1);
    expect(await countersOf(store, "budget")).toMatchObject([{ settled: 60, held: 0 }]);
  });

  test("continues a conversation through any store", async ({ store, intents, another }) => {
    const other = await another();
    const first = await createConversation(store, intents).exchange([user("a")], [assistant("b")]);
    const history = [user("a"), assistant("b"), user("c")];
    const next = await createConversation(other, intents).exchange(history, [assistant("d")]);
    expect(next.sessionId).toBe(first.sessionId);
    const more = [...history, assistant("d"), user("e")];
    const last = await createConversation(store, intents).open(more);
    expect(last.sessionId).toBe(first.sessionId);
  });

  test("lets exactly one of several stores rewrap a data key, and shows the others at once", async ({
    store,
    intents,
    another,
  }) => {
    const stores = [store, await another(), await another()];
    const connection = sealed();
    const { organizationId, gateway, wrappedKey: from } = connection;
    await store.connections.set({ connection, leaf: intents.leaf("connection.set") });
    const rewraps = await Promise.all(
      stores.map((one, at) =>
        one.connections.rewrap({
          organizationId,
          gateway,
          from,
          to: { keyId: `k${at}`, wrappedKey: sha256(`wrap ${at}`) },
          leaf: intents.leaf("connection.resealed"),
        }),
      ),
    );
    expect(rewraps.filter((rewrapped) => rewrapped)).toHaveLength(1);
    const keyId = `k${rewraps.indexOf(true)}`;
    const known = stores.map((one) => one.connections.get(organizationId, gateway));
    expect((await Promise.all(known)).map((read) => read?.keyId)).toEqual([keyId, keyId, keyId]);
  });

  test("shows a change of a key or budget to other stores at once", async ({
    store,
    intents,
    another,
  }) => {
    const other = await another();
    const budget = {
      id: "b",
      scope: {},
      unit: "usd",
      limit: 1,
      period: "day",
      mode: "hard",
      warnAt: [],
    } as const;
    await store.budgets.insert(budget, intents.leaf("budget.created"));
    const stale = intents.step([user("a")]);
    expect(await other.openStep(stale)).toMatchObject({ refusal: { code: "budgets_changed" } });
    const budgetsVersion = await other.budgets.version();
    const change = { patch: { revokedAt: 1 }, leaf: intents.leaf("key.revoked") };
    await store.keys.change({ organizationId: "acme", id: "key-1" }, () => change);
    const revoked = intents.step([user("a")], { budgetsVersion });
    expect(await other.openStep(revoked)).toMatchObject({ refusal: { code: "invalid_api_key" } });
  });

  test("lets another process find and settle the Steps of a dead process", async ({
    store,
    intents,
    another,
  }) => {
    const peer = await another();
    const clock = "gateway" as const;
    const lease = { processId: "process-1", renewal: 1, at: 0, until: 100, clock, steps: [] };
    await store.renewLease(lease);
    const step = intents.step([user("a")], { holds: [intents.hold()] });
    await expectOpened(store.openStep(step));
    const steps = [{ organizationId: "acme", stepId: step.stepId, outputTokens: 5 }];
    await store.renewLease({ ...lease, renewal: 2, until: 200, steps });
    await store.close();
    const lapsed = async (at: number) =>
      (await peer.lapsedSteps({ at, clock, after: null, limit: 9 })).steps;
    expect(await lapsed(199)).toEqual([]);
    expect(await lapsed(200)).toMatchObject([{ step: { id: step.stepId }, outputTokens: 5 }]);
    await peer.settleStep(intents.settlement(step, { outcome: "interrupted" }));
    expect(await countersOf(peer, "budget")).toMatchObject([{ settled: 60, held: 0 }]);
  });
}

function createSharedTest(open: () => Promise<OpenedSharedStore>): SharedTest {
  return (title, run) => {
    it(title, async () => {
      const { store, another } = await open();
      const stores = [store];
      try {
        await store.migrate();
        const intents = createIntents();
        await store.keys.insert(intents.key({}, sha256("secret")));
        await run({
          store,
          intents,
          async another() {
            const one = await another();
            stores.push(one);
            return one;
          },
        });
      } finally {
        for (const one of stores) await one.close();
      }
    });
  };
}

async function everything(store: Store): Promise<unknown> {
  const tenant = { organizationId: null };
  const paging = { cursor: null, limit: 100 };
  return Promise.all([
    store.keys.list(tenant, paging),
    store.connections.list(tenant, paging),
    store.sessions.list(tenant, paging),
    store.steps.list(tenant, paging),
    store.decisions.list(tenant, paging),
    store.budgets.list(),
    store.budgets.version(),
    countersOf(store, "budget"),
  ]);
}

/** Concurrent retention by several stores on the same data. */
function sharedRetentionTests(test: SharedTest): void {
  test("removes and counts each Step once in concurrent sweeps", async (subject) => {
    const { store, intents } = subject;
    const sweepers = [store, await subject.another(), await subject.another()];
    const { exchange } = createConversation(store, intents);
    const count = 30;
    for (let at = 0; at < count; at++) await exchange([user(`${at}`)], []);
    const swept = await Promise.all(
      sweepers.flatMap((one) =>
        Array.from({ length: 4 }, () => sweepSteps({ store: one, intents }, { limit: 4 })),
      ),
    );
    expect(swept.reduce((sum, { removed }) => sum + removed, 0)).toBe(count);
    const page = { cursor: null, limit: 100 };
    expect((await store.steps.list({ organizationId: "acme" }, page)).data).toEqual([]);
    const counts = (await removals(store)).map((one) => Number(Reflect.get(Object(one), "count")));
    expect(counts.reduce((sum, one) => sum + one, 0)).toBe(count);
  });

  test("keeps new content of a Session that continues during a sweep", async (subject) => {
    const { store, intents } = subject;
    const sweeper = await subject.another();
    const { exchange } = createConversation(store, intents);
    for (let round = 0; round < 5; round++) {
      const history = [user(`${round}`), assistant("b")];
      const { sessionId } = await exchange(history.slice(0, 1), history.slice(1));
      const at = Date.UTC(2026, 0, 7, 12);
      const step = intents.step([...history, user("c")], { at });
      await Promise.all([
        expectOpened(store.openStep(step)),
        sweepTranscripts({ store: sweeper, intents }),
      ]);
      const parts = await store.sessions.transcript("acme", sessionId);
      expect(parts?.at(-1)?.content).not.toBeNull();
      await store.settleStep(intents.settlement(step, { at }));
    }
  });
}
