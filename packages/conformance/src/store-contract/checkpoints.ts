import type {
  Checkpoint,
  EvidenceLeaf,
  LeafBatch,
  LeavesOutside,
  OutsideQuery,
  Store,
} from "@tollgate/core/store";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { createIntents } from "./intents.ts";
import type { SharedTest } from "./shared-responses.ts";

const organizationId = "acme";
const all = { cursor: null, limit: 1_000 };

/** Sealing of leaves: dense indexes, checkpoints and their notes. */
export function checkpointTests(test: ContractTest): void {
  test("seals each leaf once, in order", async ({ store, intents }) => {
    const written = [await firstLeaf(store)];
    expect(await store.checkpoints.last(organizationId)).toBe(null);
    for (let at = 0; at < 4; at++) written.push(await record(store, intents.leaf("decision")));
    const first = await sealNext(store, 2);
    expect(first?.batch).toMatchObject({ since: written[0]?.at });
    expect(hex(first?.batch.hashes ?? [])).toEqual(hex(hashesOf(written.slice(0, 2))));
    expect(first?.checkpoint).toMatchObject({ number: 0, size: 2 });
    await sealNext(store, 100);
    expect((await store.checkpoints.next({ organizationId, limit: 9 })).places).toEqual([]);
    written.push(await record(store, intents.leaf("key.revoked")));
    await sealNext(store, 100);
    expect(await sealedLeaves(store)).toEqual(written);
    const { data } = await store.checkpoints.list({ organizationId, from: 0 }, all);
    expect(data.map(({ number, size }) => [number, size])).toEqual([
      [0, 2],
      [1, 5],
      [2, 6],
    ]);
    expect(await store.checkpoints.last(organizationId)).toEqual(data.at(-1));
    expect(hex(data.map(({ frontier }) => frontier))).toEqual(["02", "05", "06"]);
  });

  test("adds one checkpoint of a number, and nothing of another", async ({ store, intents }) => {
    await record(store, intents.leaf("decision"));
    const batch = await store.checkpoints.next({ organizationId, limit: 1 });
    const rest = await store.checkpoints.next({ organizationId, limit: 9 });
    expect(await store.checkpoints.add({ checkpoint: checkpointOf(0, 1), batch })).toBe(true);
    const other = { checkpoint: checkpointOf(0, rest.places.length), batch: rest };
    expect(await store.checkpoints.add(other)).toBe(false);
    expect(await sealedLeaves(store)).toHaveLength(1);
    expect(await store.checkpoints.last(organizationId)).toMatchObject({ size: 1, note: null });
  });

  test("lists logs until a signed checkpoint covers their leaves", async ({ store, intents }) => {
    const none = intents.withOwner({ organizationId: "" });
    const globex = createIntents("globex");
    const [key, policy, other] = [
      await firstLeaf(store),
      await record(store, none.leaf("policy.changed")),
      await record(store, globex.leaf("decision")),
    ];
    const logs = [
      { organizationId: "", since: policy.at },
      { organizationId, since: key.at },
      { organizationId: "globex", since: other.at },
    ];
    const { unsealed, sign, organizations } = store.checkpoints;
    const whole = { after: null, limit: 9 };
    expect(await unsealed(whole)).toEqual({ logs, next: null });
    expect(await unsealed({ after: null, limit: 1 })).toEqual({ logs: logs.slice(0, 1), next: "" });
    const second = { logs: logs.slice(1, 2), next: organizationId };
    expect(await unsealed({ after: "", limit: 1 })).toEqual(second);
    const rest = { logs: logs.slice(2), next: null };
    expect(await unsealed({ after: organizationId, limit: 9 })).toEqual(rest);
    await sealNext(store, 9);
    expect(await unsealed(whole)).toEqual({ logs, next: null });
    expect(await sign({ organizationId, number: 0, note: "signed\n" })).toBe(true);
    expect(await sign({ organizationId, number: 0, note: "again\n" })).toBe(false);
    expect(await store.checkpoints.last(organizationId)).toMatchObject({ note: "signed\n" });
    expect(await unsealed(whole)).toEqual({ logs: [logs[0], logs[2]], next: null });
    expect(await unsealed({ after: "", limit: 1 })).toEqual({ logs: [], next: organizationId });
    await sealNext(store, 9, "");
    const owners = [
      { organizationId: "", sealedAt: 1_000 },
      { organizationId, sealedAt: 1_000 },
      { organizationId: "globex", sealedAt: null },
    ];
    expect(await organizations(null, 9)).toEqual(owners);
    expect(await organizations("", 9)).toEqual(owners.slice(1));
    expect(await organizations(null, 2)).toEqual(owners.slice(0, 2));
    const late = await record(store, intents.leaf("decision"));
    const found = [{ organizationId, since: late.at }];
    expect(await unsealed({ after: "", limit: 1 })).toEqual({ logs: found, next: organizationId });
  });

  test("lists checkpoints and leaves from a place on, page by page", async ({ store, intents }) => {
    for (let at = 0; at < 4; at++) await record(store, intents.leaf("decision"));
    for (let at = 0; at < 5; at++) await sealNext(store, 1);
    const numbers: number[] = [];
    const indexes: number[] = [];
    const from = { organizationId, from: 1 };
    for (let cursor: string | null = null, isFirst = true; isFirst || cursor !== null; ) {
      const page = await store.checkpoints.list(from, { cursor, limit: 3 });
      numbers.push(...page.data.map(({ number }) => number));
      [cursor, isFirst] = [page.nextCursor, false];
    }
    for (let cursor: string | null = null, isFirst = true; isFirst || cursor !== null; ) {
      const page = await store.checkpoints.leaves(from, { cursor, limit: 3 });
      indexes.push(...page.data.map(({ index }) => index));
      [cursor, isFirst] = [page.nextCursor, false];
    }
    expect([numbers, indexes]).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ]);
  });

  test("counts leaves outside the log, page by page", async ({ store, intents }) => {
    const leaves = [await firstLeaf(store)];
    for (let at = 0; at < 4; at++) leaves.push(await record(store, intents.leaf("decision")));
    await sealNext(store, 2);
    const times = leaves.slice(2).map(({ at }) => at);
    const [early, late] = [Math.min(...times), Math.max(...times)];
    const found = { size: 2, from: late + 1, to: late + 1 };
    expect(await outsideOf(store, found)).toEqual({ count: 3, since: early, looks: 3 });
    const sealed = { count: 4, since: leaves[1]?.at, looks: 3 };
    expect(await outsideOf(store, { ...found, size: 1 })).toEqual(sealed);
    const none = { count: 0, since: null, looks: 3 };
    expect(await outsideOf(store, { ...found, from: early })).toEqual(none);
    const future = { size: 2, from: early - 2, to: early - 1 };
    expect(await outsideOf(store, future)).toEqual({ count: 3, since: early, looks: 3 });
    await sealNext(store, 9);
    expect(await outsideOf(store, { ...found, size: 5 })).toEqual(none);
    expect(await outsideOf(store, found, "nobody")).toEqual({ ...none, looks: 1 });
  });

  test("seals the leaves of Steps, and keeps them when the Steps are removed", async ({
    store,
    intents,
  }) => {
    const step = intents.step([user("a")]);
    await expectOpened(store.openStep(step));
    await store.settleStep(intents.settlement(step));
    await sealNext(store, 9);
    const sealed = await sealedLeaves(store);
    expect(sealed.map((leaf) => leaf?.kind)).toEqual([
      "key.created",
      "step.opened",
      "step.settled",
    ]);
    const leaf = () => intents.leaf("activity.removed");
    const sweep = {
      from: "",
      at: step.at + 1_000_000,
      keep: 1_000,
      limit: 10,
      unfolded: new Map(),
      leaf,
    };
    expect(await store.steps.sweep(sweep)).toMatchObject({ removed: 1 });
    await sealNext(store, 9);
    expect((await sealedLeaves(store)).slice(0, 3)).toEqual(sealed);
    expect(await sealedLeaves(store)).toHaveLength(4);
  });
}

/** Sealing by several stores on the same data. */
export function sharedCheckpointTests(test: SharedTest): void {
  test("seals each leaf once, while several stores write and seal", async (subject) => {
    const { store, intents } = subject;
    const stores = [store, await subject.another(), await subject.another()];
    const leaves = Array.from({ length: 90 }, () => intents.leaf("decision"));
    let isWritten = false;
    const writing = Promise.all(
      stores.map(async (one, at) => {
        for (const leaf of leaves.slice(at * 30, at * 30 + 30)) await record(one, leaf);
      }),
    ).finally(() => {
      isWritten = true;
    });
    const sealing = stores.map(async (one) => {
      for (;;) {
        const isLast = isWritten;
        const { places } = (await sealNext(one, 7))?.batch ?? { places: [0] };
        if (isLast && places.length === 0) return;
      }
    });
    await Promise.all([writing, ...sealing]);
    const sealed = (await sealedLeaves(store)).map((leaf) => leaf?.id);
    expect(sealed.toSorted()).toEqual(
      [await firstLeaf(store), ...leaves].map(({ id }) => id).toSorted(),
    );
    const { data } = await store.checkpoints.list({ organizationId, from: 0 }, all);
    expect(data.map(({ number }) => number)).toEqual(data.map((_, at) => at));
    expect(data.at(-1)?.size).toBe(91);
  });
}

interface Sealed {
  readonly checkpoint: Omit<Checkpoint, "note">;
  readonly batch: LeafBatch;
}

/** Seals the next leaves of a log; null if another store was faster. An empty batch adds no checkpoint. */
async function sealNext(store: Store, limit: number, log = organizationId): Promise<Sealed | null> {
  const last = await store.checkpoints.last(log);
  const batch = await store.checkpoints.next({ organizationId: log, limit });
  const size = (last?.size ?? 0) + batch.places.length;
  const checkpoint = { ...checkpointOf((last?.number ?? -1) + 1, size), organizationId: log };
  if (batch.places.length === 0) return { checkpoint, batch };
  return (await store.checkpoints.add({ checkpoint, batch })) ? { checkpoint, batch } : null;
}

function checkpointOf(number: number, size: number): Omit<Checkpoint, "note"> {
  return { organizationId, number, size, frontier: Uint8Array.of(size), at: 1_000 + number };
}

async function record(store: Store, leaf: EvidenceLeaf): Promise<EvidenceLeaf> {
  await store.evidence.record(leaf);
  return withBuffer(leaf);
}

/** The sum of the pages of two leaves each. */
async function outsideOf(
  { checkpoints }: Store,
  query: Pick<OutsideQuery, "size" | "from" | "to">,
  log = organizationId,
): Promise<Pick<LeavesOutside, "count" | "since"> & { readonly looks: number }> {
  let [count, looks, since, after]: [number, number, number | null, number | null] = [
    0,
    0,
    null,
    null,
  ];
  do {
    const page = await checkpoints.outside({ ...query, organizationId: log, after, limit: 2 });
    count += page.count;
    if (page.since !== null) since = Math.min(since ?? page.since, page.since);
    looks++;
    after = page.next;
  } while (after !== null);
  return { count, since, looks };
}

/** The leaf of the key that every test starts with. */
async function firstLeaf(store: Store): Promise<EvidenceLeaf> {
  const [leaf] = (await store.evidence.list({ organizationId }, all)).data;
  if (!leaf) return expect.fail("The organization has no leaf.");
  return withBuffer(leaf);
}

/** The sealed leaves in their order, whose indexes are dense. */
async function sealedLeaves(store: Store): Promise<readonly (EvidenceLeaf | null)[]> {
  const { data } = await store.checkpoints.leaves({ organizationId, from: 0 }, all);
  expect(data.map(({ index }) => index)).toEqual(data.map((_, at) => at));
  return data.map(({ leaf }) => leaf && withBuffer(leaf));
}

/** Stores may return bytes as any view. */
function withBuffer(leaf: EvidenceLeaf): EvidenceLeaf {
  return { ...leaf, hash: Buffer.from(leaf.hash) };
}

function hashesOf(leaves: readonly EvidenceLeaf[]): readonly Uint8Array[] {
  return leaves.map(({ hash }) => hash);
}

function hex(hashes: readonly Uint8Array[]): readonly string[] {
  return hashes.map((hash) => Buffer.from(hash).toString("hex"));
}
