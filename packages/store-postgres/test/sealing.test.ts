import type { CheckpointRepository, EvidenceLeaf, Store } from "@tollgate/core/store";
import { leafHash } from "@tollgate/core/store";
import { expect, inject, it, onTestFinished } from "vitest";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

const organizationId = "acme";

function leaf(id: string): EvidenceLeaf {
  const meta = JSON.stringify({ id });
  return { id, organizationId, kind: "decision", at: 1_000, meta, hash: leafHash(meta) };
}

async function openStore(): Promise<{ readonly schema: string; readonly store: Store }> {
  const schema = freshSchema();
  const store = postgresStore({ url: inject("postgresUrl") }, { schema });
  onTestFinished(() => store.close());
  await store.migrate();
  return { schema, store };
}

/** Seals everything that is visible, and returns the ids of the batch. */
async function sealAll({ checkpoints }: Store): Promise<readonly string[]> {
  const last = await checkpoints.last(organizationId);
  const batch = await checkpoints.next({ organizationId, limit: 100 });
  const before = last?.size ?? 0;
  if (batch.places.length === 0) return [];
  const checkpoint = {
    organizationId,
    number: (last?.number ?? -1) + 1,
    size: before + batch.places.length,
    frontier: new Uint8Array(32),
    at: 1_000,
  };
  expect(await checkpoints.add({ checkpoint, batch })).toBe(true);
  return idsFrom(checkpoints, before);
}

async function idsFrom(checkpoints: CheckpointRepository, from: number) {
  const page = await checkpoints.leaves({ organizationId, from }, { cursor: null, limit: 100 });
  return page.data.map((sealed) => sealed.leaf?.id ?? "none");
}

it("seals a leaf whose transaction commits after those with later numbers, however late", async () => {
  const { schema, store } = await openStore();
  await store.evidence.record(leaf("first"));
  await withClient(async (client) => {
    const insert = `INSERT INTO ${schema}.leaves
      (organization_id, sequence, id, kind, at, meta, hash)
      VALUES ('${organizationId}', $1, $2, 'decision', 1000, '{}', $3)`;
    await client.query("BEGIN");
    const { rows } = await client.query(`SELECT nextval('${schema}.sequence') AS number`);
    await store.evidence.record(leaf("second"));
    expect(await sealAll(store)).toEqual(["first", "second"]);
    for (let round = 0; round < 3; round++) {
      await store.evidence.record(leaf(`later ${round}`));
      expect(await sealAll(store)).toEqual([`later ${round}`]);
    }
    await client.query(insert, [rows[0].number, "late", Buffer.alloc(32)]);
    expect(await sealAll(store)).toEqual([]);
    await client.query("COMMIT");
    expect(await sealAll(store)).toEqual(["late"]);
  });
  expect(await sealAll(store)).toEqual([]);
  const ids = await idsFrom(store.checkpoints, 0);
  expect(ids).toEqual(["first", "second", "later 0", "later 1", "later 2", "late"]);
});

it("looks back only as far as transactions run that may still write", async () => {
  const { schema, store } = await openStore();
  const settled = async (): Promise<number> =>
    withClient(async (client) => {
      const { rows } = await client.query(
        `SELECT settled FROM ${schema}.checkpoints ORDER BY number DESC LIMIT 1`,
      );
      return Number(rows[0].settled);
    });
  const seal = async (id: string): Promise<number> => {
    await store.evidence.record(leaf(id));
    await sealAll(store);
    return settled();
  };
  const first = await seal("first");
  expect(first).toBeGreaterThan(0);
  await withClient(async (reader) => {
    // A long read, such as a backup, holds nothing up.
    await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await reader.query(`SELECT last_value FROM ${schema}.sequence`);
    const second = await seal("second");
    expect(second).toBeGreaterThan(first);
    await withClient(async (writer) => {
      await writer.query("BEGIN");
      await writer.query(`SELECT nextval('${schema}.sequence')`);
      await seal("third");
      expect(await seal("fourth")).toBe(second);
      await writer.query("ROLLBACK");
    });
    expect(await seal("fifth")).toBeGreaterThan(second);
  });
});
