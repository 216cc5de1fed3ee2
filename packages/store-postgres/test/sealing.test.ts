import type { CheckpointRepository, EvidenceLeaf, Store } from "@tollgate/core/store";
import { leafHash } from "@tollgate/core/store";
import { expect, inject, it, onTestFinished } from "vitest";
import { postgresStore } from "../src/index.ts";
import { freshSchema, migrated, withClient } from "./databases.ts";

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
  await withLateLeaf(schema, async (insert, commit) => {
    await store.evidence.record(leaf("second"));
    expect(await sealAll(store)).toEqual(["first", "second"]);
    for (let round = 0; round < 3; round++) {
      await store.evidence.record(leaf(`later ${round}`));
      expect(await sealAll(store)).toEqual([`later ${round}`]);
    }
    await insert();
    expect(await sealAll(store)).toEqual([]);
    await commit();
    expect(await sealAll(store)).toEqual(["late"]);
  });
  expect(await sealAll(store)).toEqual([]);
  const ids = await idsFrom(store.checkpoints, 0);
  expect(ids).toEqual(["first", "second", "later 0", "later 1", "later 2", "late"]);
});

/** Takes the next number of the sequence for a leaf in a transaction that a test writes and commits later. */
async function withLateLeaf(
  schema: string,
  use: (insert: () => Promise<unknown>, commit: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  await withClient(async (client) => {
    await client.query("BEGIN");
    const { rows } = await client.query(`SELECT nextval('${schema}.sequence') AS number`);
    const text = `INSERT INTO ${schema}.leaves (organization_id, sequence, id, kind, at, meta, hash)
      VALUES ('${organizationId}', $1, 'late', 'decision', 1000, '{}', $2)`;
    const insert = () => client.query(text, [rows[0].number, Buffer.alloc(32)]);
    await use(insert, () => client.query("COMMIT"));
  });
}

const newSchema = async (schema: string): Promise<void> => {
  await withClient((client) => client.query(`DROP SCHEMA ${schema} CASCADE`));
  await migrated(schema);
};
/** As `pg_restore --data-only` into emptied tables. */
const newData = (schema: string): Promise<unknown> =>
  withClient((client) =>
    client.query(`TRUNCATE ${schema}.leaves, ${schema}.sealed_leaves, ${schema}.checkpoints;
      SELECT setval('${schema}.sequence', 1)`),
  );

it.each([
  { restore: newSchema, more: [], when: "" },
  { restore: newData, more: [], when: " into the same tables" },
  {
    restore: newSchema,
    more: ["third", "fourth", "fifth", "sixth"],
    when: ", and soon were beyond the last one",
  },
])("seals such a leaf although its numbers began again, as after a restore$when", async (given) => {
  const { schema, store } = await openStore();
  for (const id of ["one", "two", "three", "four"]) await store.evidence.record(leaf(id));
  expect(await sealAll(store)).toHaveLength(4);
  await given.restore(schema);
  await withLateLeaf(schema, async (insert, commit) => {
    const ids = ["second", ...given.more];
    for (const id of ids) await store.evidence.record(leaf(id));
    expect(await sealAll(store)).toEqual(ids);
    await insert();
    await commit();
    expect(await sealAll(store)).toEqual(["late"]);
  });
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
