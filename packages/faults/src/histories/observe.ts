import { everyOrganization, type Gateway, type List } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";

/** The organizations of a history. */
export const organizations = ["acme", "globex"] as const;

/** Small pages, so that lists span several. */
const paging = { limit: 3 };

/** Everything that administration can read, and every leaf. */
export async function observe(gateway: Gateway, store: Store): Promise<unknown> {
  const everyone = { organizationId: everyOrganization } as const;
  const sessions = await rows(gateway.sessions.list(everyone, paging));
  const { data: budgets } = await gateway.budgets.list();
  return {
    keys: await rows(gateway.keys.list(everyone, paging)),
    budgets,
    counters: await each(budgets, ({ id }) => rows(gateway.budgets.status({ id }, paging))),
    raises: await each(budgets, ({ id }) => gateway.budgets.raises({ id })),
    drift: await gateway.budgets.reconcile(),
    connections: await rows(gateway.connections.list(everyone, paging)),
    sealed: await each(organizations, (organizationId) => sealedOf(store, organizationId)),
    changes: await rows(gateway.changes.list(everyone, paging)),
    sums: await gateway.steps.summarize(everyone, ["gateway", "outcome"]),
    sessions,
    transcripts: await each(sessions, ({ id, organizationId }) =>
      gateway.sessions.transcript({ id, organizationId }),
    ),
    steps: await rows(gateway.steps.list(everyone, paging)),
    contents: await each(await rows(gateway.steps.list(everyone)), ({ id, organizationId }) =>
      store.steps.contents(organizationId, id),
    ),
    activity: await rows(gateway.activity.list(everyone, paging)),
    decisions: await rows(gateway.decisions.list(everyone, paging)),
    leaves: await each([...organizations, ""], (organizationId) => leavesOf(store, organizationId)),
  };
}

/** The lock of a connection, whose bytes are of another class in each store. */
async function sealedOf(store: Store, organizationId: string): Promise<readonly string[]> {
  const sealed = await store.connections.get(organizationId, "own");
  return [sealed?.credential, sealed?.wrappedKey].map((bytes) =>
    Buffer.from(bytes ?? []).toString("hex"),
  );
}

async function leavesOf(store: Store, organizationId: string): Promise<readonly unknown[]> {
  const leaves: unknown[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof store.evidence.list>> = await store.evidence.list(
      { organizationId },
      { cursor, limit: 3 },
    );
    leaves.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return leaves;
}

async function rows<Row>(list: List<Row>): Promise<readonly Row[]> {
  const all: Row[] = [];
  for await (const row of list) all.push(row);
  return all;
}

async function each<Item, Result>(
  items: readonly Item[],
  read: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const item of items) results.push(await read(item));
  return results;
}
