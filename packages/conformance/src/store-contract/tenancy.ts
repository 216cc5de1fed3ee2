import type { Store, StorePage, StorePaging } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, hex, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { createConversation } from "./conversation.ts";
import { createIntents, type Intents } from "./intents.ts";

const paging = { cursor: null, limit: 100 };

/** Organizations don't see each other's data, even if their ids are equal. */
export function tenancyTests(test: ContractTest): void {
  test("finds nothing when it reads as another organization", async ({ store, intents }) => {
    const { exchange } = createConversation(store, intents);
    const { intent, sessionId } = await exchange([user("a")], [assistant("b")]);
    const decisionId = intent.decision.id;
    const reads = (organizationId: string | null) =>
      Promise.all([
        store.keys.get(organizationId, "key-1"),
        store.sessions.get(organizationId, sessionId),
        store.sessions.transcript(organizationId, sessionId),
        store.steps.get(organizationId, intent.stepId),
        store.decisions.get(organizationId, decisionId),
      ]);
    expect(await reads("globex")).toEqual([null, null, null, null, null]);
    expect(await reads("")).toEqual([null, null, null, null, null]);
    expect(await reads("acme")).not.toContain(null);
    expect(await reads(null)).toEqual(await reads("acme"));
    for (const list of await listsOf(store, "globex")) expect(list).toEqual([]);
    for (const list of await listsOf(store, "acme")) expect(list).not.toEqual([]);
  });

  test("rejects a settlement or attempt as another organization", async ({ store, intents }) => {
    const step = intents.step([user("a")], { holds: [intents.hold()] });
    await expectOpened(store.openStep(step));
    const organizationId = "globex";
    const settlement = { ...intents.settlement(step), organizationId };
    await expect(store.settleStep(settlement)).rejects.toMatchObject({ code: "step_not_found" });
    const attempt = intents.attempt(step, { organizationId });
    await expect(store.openAttempt(attempt)).rejects.toMatchObject({ code: "step_not_found" });
    expect((await store.steps.get("acme", step.stepId))?.attempts).toHaveLength(1);
  });

  test("keeps the records of organizations with equal ids apart", async ({ store, intents }) => {
    const theirs = createIntents("globex");
    await store.keys.insert(theirs.key({ label: "theirs" }));
    const [mine, other] = [intents.step([user("mine")]), theirs.step([user("theirs")])];
    intents.id();
    expect(mine.stepId).toBe(other.stepId);
    await expectOpened(store.openStep(mine));
    await expectOpened(store.openStep(other));
    await store.settleStep(theirs.settlement(other, { outcome: "failed" }));
    expect((await store.steps.get("acme", mine.stepId))?.settledAt).toBeNull();
    expect((await store.steps.get("globex", other.stepId))?.outcome).toBe("failed");
    const { newSessionId } = mine.transcript;
    const contents = ["acme", "globex"].map(async (organization) => {
      const parts = await store.sessions.transcript(organization, newSessionId);
      return hex(parts?.[0]?.content ?? undefined);
    });
    expect(new Set(await Promise.all(contents)).size).toBe(2);
    expect((await store.keys.get("acme", "key-1"))?.label).toBe("label of key-1");
    expect((await store.steps.list({ organizationId: null }, paging)).data).toHaveLength(2);
  });

  test("gives an organization cursors of its own, which don't tell what others wrote", async ({
    store,
    intents,
  }) => {
    for (let at = 1; at <= 2; at++) {
      await store.keys.insert(intents.withOwner({ keyId: `key of ${at}` }).key());
      await expectOpened(store.openStep(intents.step([user(`${at}`)])));
    }
    const pages = (organizationId: string | null) => (list: keyof typeof placedByCount) =>
      placedByCount[list](store, { organizationId }, { cursor: null, limit: 1 });
    for (const list of ["keys", "sessions", "steps", "decisions", "changes"] as const) {
      const [own, all] = [await pages("acme")(list), await pages(null)(list)];
      // Both end after the same row. The cursor of all organizations may say how much they have written.
      expect(own.data).toEqual(all.data);
      const counting = all.nextCursor;
      expect(own.nextCursor).not.toBe(counting);
      await expect(
        placedByCount[list](store, { organizationId: "acme" }, { cursor: counting, limit: 1 }),
      ).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });

  test("gives an organization that never had a key cursors that don't tell what others wrote", async ({
    store,
    intents,
  }) => {
    const organizationId = "globex";
    for (let count = 0; count < 2; count++)
      await store.evidence.record({ ...intents.leaf("connection.set"), organizationId });
    const first = { cursor: null, limit: 1 };
    const own = await store.evidence.changes({ organizationId }, first);
    const all = await store.evidence.changes({ organizationId: null }, first);
    expect(own.data).toEqual(all.data);
    const next = { cursor: all.nextCursor, limit: 1 };
    await expect(store.evidence.changes({ organizationId }, next)).rejects.toMatchObject({
      code: "invalid_argument",
    });
    const last = await store.evidence.changes(
      { organizationId },
      { ...next, cursor: own.nextCursor },
    );
    expect(last).toMatchObject({ data: [{ organizationId }], nextCursor: null });
    expect(last.data).not.toEqual(own.data);
  });

  test("shows an organization the same, whatever others do", async ({ store }) => {
    const alone = await trace(store, createIntents("alone"), async () => {});
    const noise = createIntents("noise");
    await store.keys.insert(noise.key());
    const { exchange } = createConversation(store, noise);
    const disturb = async (): Promise<void> => {
      await exchange([user("a")], [assistant("b")]);
      await exchange([user("a"), assistant("b"), user("c")], [assistant("d")]);
    };
    const among = await trace(store, createIntents("among"), disturb);
    expect(among).toEqual(alone);
  });
}

type ReadPage = (
  store: Store,
  of: { readonly organizationId: string | null },
  paging: StorePaging,
) => Promise<StorePage<unknown>>;

/** Lists whose order can depend on how much the whole store has written. */
const placedByCount = {
  keys: (store, of, page) => store.keys.list(of, page),
  sessions: (store, of, page) => store.sessions.list(of, page),
  steps: (store, of, page) => store.steps.list(of, page),
  decisions: (store, of, page) => store.decisions.list(of, page),
  changes: (store, of, page) => store.evidence.changes(of, page),
} satisfies Readonly<Record<string, ReadPage>>;

/** Everything an organization can observe of a short history of its own, without its name. */
async function trace(
  store: Store,
  intents: Intents,
  disturb: () => Promise<void>,
): Promise<string> {
  const { organizationId } = intents.owner;
  await store.keys.insert(intents.key());
  const { exchange, open } = createConversation(store, intents);
  await disturb();
  const first = await exchange([user("a")], [assistant("b")]);
  await disturb();
  await exchange([user("a"), assistant("b"), user("c")], [assistant("d")]);
  await open([user("z")], { sessionId: first.sessionId });
  await disturb();
  const lists = await listsOf(store, organizationId);
  const seen = JSON.stringify(lists, (name, value: unknown) =>
    name === "hash" || /ead$/.test(name) ? null : value,
  );
  return seen.replaceAll(organizationId, "it").replaceAll(/"contentCommitment\\":\\"\w+/g, "");
}

async function listsOf(store: Store, organizationId: string): Promise<readonly unknown[]> {
  const tenant = { organizationId };
  const pages = await Promise.all([
    store.keys.list(tenant, paging),
    store.sessions.list(tenant, paging),
    store.steps.list(tenant, paging),
    store.decisions.list(tenant, paging),
    store.evidence.list(tenant, paging),
  ]);
  return pages.map(({ data }) => data);
}
