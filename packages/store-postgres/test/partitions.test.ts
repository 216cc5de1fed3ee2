import type { EvidenceLeaf, RemovedSteps, StepSweep, Store } from "@tollgate/core/store";
import { leafHash } from "@tollgate/core/store";
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import {
  insertKey,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import type { PostgresQuery } from "../src/database/client.ts";
import { createDatabase } from "../src/database/database.ts";
import { postgresStore } from "../src/index.ts";
import { makePartitions } from "../src/partitions/make-partitions.ts";
import {
  boundAt,
  missingRanges,
  type PartitionRange,
  partitionName,
  rangeOf,
} from "../src/partitions/partition-range.ts";
import { createPool, freshSchema, poolQuerying, storeOver, withClient } from "./databases.ts";

const day = 86_400_000;
const keep = 30 * day;

function open(schema: string, migrate: "auto" | "check" = "auto"): Store {
  const store = postgresStore({ url: inject("postgresUrl") }, { schema, migrate });
  onTestFinished(() => store.close());
  return store;
}

async function openMigrated(): Promise<{ readonly store: Store; readonly schema: string }> {
  const schema = freshSchema();
  const store = open(schema);
  await store.migrate();
  await insertKey(store);
  return { store, schema };
}

let leaves = 0;

function leafOf({ organizationId, count }: RemovedSteps): EvidenceLeaf {
  const meta = JSON.stringify({ count });
  const id = `removal ${++leaves}`;
  return { id, organizationId, kind: "activity.removed", at: 0, meta, hash: leafHash(meta) };
}

function sweep(
  store: Store,
  at: number,
  { limit = 100, unfolded = new Map() }: Partial<Pick<StepSweep, "limit" | "unfolded">> = {},
) {
  return store.steps.sweep({ from: "", at, keep, limit, unfolded, leaf: leafOf });
}

async function query(text: string): Promise<readonly Record<string, unknown>[]> {
  return withClient(async (client) => (await client.query(text)).rows);
}

async function partitionsOf(schema: string): Promise<readonly PartitionRange[]> {
  const rows = await query(`SELECT pg_get_expr(c.relpartbound, c.oid) AS bounds
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = '${schema}.steps'::regclass ORDER BY c.relname`);
  return rows.flatMap(({ bounds }) => rangeOf(String(bounds)) ?? []);
}

/** The first partition of a schema, created if there is none. */
async function firstPartition(store: Store, schema: string): Promise<PartitionRange> {
  await sweep(store, 0);
  const [first] = await partitionsOf(schema);
  if (!first) return expect.fail("No partition exists.");
  return first;
}

/** Opens a Step at a time, with an id of that time. Settles it unless `settles` is false. */
async function stepAt(store: Store, at: number, { settles = true } = {}): Promise<string> {
  const id = `${boundAt(at)}-7000-8000-${String(++leaves).padStart(12, "0")}`;
  expect(await store.openStep({ ...stepIntent(id), at })).toMatchObject({ opened: true });
  if (settles) await store.settleStep({ ...stepSettlement(id), at });
  return id;
}

async function counted(store: Store): Promise<readonly number[]> {
  const { data } = await store.evidence.list(
    { organizationId: owner.organizationId },
    { cursor: null, limit: 1_000 },
  );
  return data
    .filter(({ kind }) => kind === "activity.removed")
    .map(({ meta }) => Number(Reflect.get(Object(JSON.parse(meta)), "count")));
}

async function stepIds(store: Store): Promise<readonly string[]> {
  const { data } = await store.steps.list({ organizationId: null }, { cursor: null, limit: 100 });
  return data.map(({ id }) => id);
}

it("has no partitions until activity has a retention, and then creates some ahead of time", async () => {
  const { store, schema } = await openMigrated();
  expect(await partitionsOf(schema)).toEqual([]);
  await Promise.all([store, open(schema), open(schema)].map((one) => sweep(one, Date.now())));
  await sweep(store, Date.now());
  const partitions = await partitionsOf(schema);
  expect(partitions).toHaveLength(2);
  expect(partitions.map(({ from, until }) => until - from)).toEqual([5 * day, 5 * day]);
  expect(partitions[0]?.from).toBeGreaterThan(Date.now() + day);
  expect(partitions[1]?.from).toBe(partitions[0]?.until);
  await sweep(store, Date.now());
  expect(await partitionsOf(schema)).toEqual(partitions);
});

it("begins a sweep again if a connection is lost as it begins (F33)", async () => {
  const pool = createPool();
  let losses = 0;
  const losing = poolQuerying(pool, (query) => (sent, answered) => {
    if (losses === 0 || !sent.text.startsWith("BEGIN")) return query(sent, answered);
    losses--;
    setTimeout(answered, 1, new Error("Query read timeout"), undefined);
  });
  const store = await storeOver(losing);
  for (const at of [0, 1]) {
    await stepAt(store, at);
    losses = 1;
    expect(await sweep(store, keep + at + 1)).toEqual({ removed: 1, next: null });
  }
  expect(await counted(store)).toEqual([1, 1]);
});

it("drops a partition once all its Steps are old, and writes one leaf with their number", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  for (const at of [from, from + day, until - 1]) await stepAt(store, at);
  const next = await stepAt(store, until);
  expect(await sweep(store, until + keep - 1)).toEqual({ removed: 0, next: null });
  expect(await sweep(store, until + keep)).toEqual({ removed: 3, next: expect.any(String) });
  expect(await stepIds(store)).toEqual([next]);
  expect(await counted(store)).toEqual([3]);
  expect((await partitionsOf(schema))[0]?.from).toBe(until);
  expect(await sweep(store, until + keep)).toEqual({ removed: 0, next: null });
});

it("drops a partition of many organizations with few statements, and a leaf for each", async () => {
  const pool = createPool();
  const schema = freshSchema();
  let statements = 0;
  const counting = poolQuerying(pool, (query) => (sent, answered) => {
    statements++;
    return query(sent, answered);
  });
  const store = postgresStore({ pool: counting }, { schema });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  const { from, until } = await firstPartition(store, schema);
  const id = await stepAt(store, from);
  const [columns] = await query(`SELECT string_agg(column_name, ', ') AS names
    FROM information_schema.columns WHERE table_schema = '${schema}' AND table_name = 'steps'
      AND column_name NOT IN ('organization_id', 'unsuccessful')`);
  const organizations = 1_200;
  await query(`INSERT INTO ${schema}.steps (organization_id, ${columns?.["names"]})
    SELECT 'many-' || n, ${columns?.["names"]} FROM ${schema}.steps, generate_series(1, ${organizations}) AS n
    WHERE id = '${id}'`);
  statements = 0;
  expect(await sweep(store, until + keep)).toEqual({
    removed: organizations + 1,
    next: expect.any(String),
  });
  expect(statements).toBeLessThan(30);
  expect(await stepIds(store)).toEqual([]);
  for (const organizationId of [owner.organizationId, "many-1", `many-${organizations}`]) {
    const { data } = await store.evidence.list({ organizationId }, { cursor: null, limit: 9 });
    const removal = data.find(({ kind }) => kind === "activity.removed");
    expect(removal).toMatchObject({ organizationId, meta: '{"count":1}' });
    expect(Buffer.compare(removal?.hash ?? Buffer.alloc(0), leafHash('{"count":1}'))).toBe(0);
  }
});

it("finishes a sweep although the gateway's clock is far ahead of the database's", async () => {
  const { store, schema } = await openMigrated();
  const { until } = await firstPartition(store, schema);
  const before = await partitionsOf(schema);
  expect(await sweep(store, until + 400 * day)).toEqual({ removed: 0, next: null });
  expect(await partitionsOf(schema)).toEqual(before);
});

it("keeps a partition until its open Step is settled", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  const id = await stepAt(store, from, { settles: false });
  expect(await sweep(store, until + keep)).toEqual({ removed: 0, next: null });
  expect(await store.settleStep({ ...stepSettlement(id), at: from })).toMatchObject({
    settled: true,
  });
  expect(await sweep(store, until + keep)).toEqual({ removed: 1, next: expect.any(String) });
  expect(await stepIds(store)).toEqual([]);
});

it("keeps a partition with a Step that opened later than the time of its id", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  const id = `${boundAt(from)}-7000-8000-000000000000`;
  await store.openStep({ ...stepIntent(id), at: until + day });
  await store.settleStep({ ...stepSettlement(id), at: until + day });
  expect(await sweep(store, until + keep + day)).toEqual({ removed: 0, next: null });
  expect(await sweep(store, until + keep + day + 1)).toEqual({
    removed: 1,
    next: expect.any(String),
  });
});

it("removes Steps with other kinds of ids row by row, outside the partitions", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  for (const id of ["one", "two", "three"]) {
    await store.openStep({ ...stepIntent(id), at: from });
    await store.settleStep({ ...stepSettlement(id), at: from });
  }
  await stepAt(store, from);
  expect(await sweep(store, until + keep, { limit: 2 })).toEqual({
    removed: 1,
    next: expect.any(String),
  });
  expect(await sweep(store, until + keep, { limit: 2 })).toEqual({
    removed: 2,
    next: expect.any(String),
  });
  expect(await sweep(store, until + keep, { limit: 2 })).toEqual({ removed: 1, next: null });
  expect(await stepIds(store)).toEqual([]);
});

it("keeps a partition with Steps of an organization whose sums lack some, and drops the next", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  const theirs = await stepAt(store, from);
  await query(`INSERT INTO ${schema}.organizations (id, salt) VALUES ('globex', '');
    UPDATE ${schema}.steps SET organization_id = 'globex'`);
  const kept = await stepAt(store, from);
  await stepAt(store, until);
  const at = until + 5 * day + keep;
  const unfolded = new Map([["globex", from]]);
  expect(await sweep(store, at, { unfolded })).toEqual({ removed: 1, next: "" });
  expect(await sweep(store, at, { unfolded })).toEqual({ removed: 0, next: null });
  expect(await stepIds(store)).toEqual([kept, theirs]);
  expect(await sweep(store, at)).toEqual({ removed: 2, next: "" });
});

it("drops each partition once when several processes sweep at the same time", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  for (let at = 0; at < 10; at++) await stepAt(store, from + at);
  for (let at = 0; at < 5; at++) await stepAt(store, until + at);
  const sweepers = [store, open(schema), open(schema)];
  let removed = 0;
  for (let round = 0; round < 4; round++)
    for (const one of await Promise.all(
      sweepers.map((sweeper) => sweep(sweeper, until + 5 * day + keep)),
    ))
      removed += one.removed;
  expect(removed).toBe(15);
  expect((await counted(store)).toSorted((a, b) => a - b)).toEqual([5, 10]);
  expect(await stepIds(store)).toEqual([]);
});

it("does not wait for readers of the table, and finishes in a later sweep", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  await stepAt(store, from);
  await withClient(async (reader) => {
    await reader.query(`BEGIN; SELECT FROM ${schema}.steps`);
    expect(await sweep(store, until + keep)).toEqual({ removed: 0, next: null });
    expect(await stepIds(store)).toHaveLength(1);
    await reader.query("COMMIT");
  });
  expect(await sweep(store, until + keep)).toEqual({ removed: 1, next: expect.any(String) });
});

it("changes neither partition nor evidence if its connection is cut before it finishes", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  const id = await stepAt(store, from);
  await withClient(async (reader) => {
    await reader.query(`BEGIN; SELECT FROM ${schema}.steps`);
    const swept = sweep(store, until + keep);
    const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND query LIKE 'LOCK TABLE ${schema}.%'`;
    while ((await query(cut)).length === 0) await new Promise((resolve) => setImmediate(resolve));
    // Its repeat finds the table in use.
    expect(await swept).toEqual({ removed: 0, next: null });
    await reader.query("COMMIT");
  });
  expect(await stepIds(store)).toEqual([id]);
  expect(await counted(store)).toEqual([]);
  expect(await sweep(store, until + keep)).toEqual({ removed: 1, next: expect.any(String) });
  expect(await counted(store)).toEqual([1]);
});

it("creates and drops no table if the store may not change its schema", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  await stepAt(store, from);
  await store.openStep({ ...stepIntent("rest"), at: from });
  await store.settleStep({ ...stepSettlement("rest"), at: from });
  const before = await partitionsOf(schema);
  const checked = open(schema, "check");
  expect(await sweep(checked, until + keep)).toEqual({ removed: 1, next: null });
  expect(await partitionsOf(schema)).toEqual(before);
  expect(await stepIds(store)).toHaveLength(1);
});

it("opens, reads and settles a Step without touching other partitions", async () => {
  const { store, schema } = await openMigrated();
  const { from, until } = await firstPartition(store, schema);
  const count = 40;
  for (let at = 0; at < count; at++)
    await store.steps.get(owner.organizationId, await stepAt(store, from + at));
  await stepAt(store, until);
  await store.close();
  const [own, other] = [from, until].map((at) => partitionName({ from: at, until: at }));
  for (;;) {
    const rows = await query(`SELECT relname AS name, idx_scan + seq_scan AS scans
      FROM pg_stat_user_tables WHERE schemaname = '${schema}'`);
    const scans = new Map(rows.map((row) => [String(row["name"]), Number(row["scans"])]));
    // A backend reports its statistics when it ends.
    if ((scans.get(own ?? "") ?? 0) < 3 * count) continue;
    for (const name of [other ?? "", "steps_rest"]) expect(scans.get(name)).toBeLessThan(count / 2);
    break;
  }
});

/** The names of the constraints on a schema's default partition. */
async function promisesOf(schema: string): Promise<readonly unknown[]> {
  const rows = await query(`SELECT conname FROM pg_constraint
    WHERE conrelid = '${schema}.steps_rest'::regclass AND contype = 'c'`);
  return rows.map(({ conname }) => conname);
}

it("creates partitions next to a large default partition without scanning it under a lock", async () => {
  const { store, schema } = await openMigrated();
  const [first, last] = missingRanges([], { now: Date.now(), keep });
  if (!first || !last) return expect.fail("Nothing is missing.");
  const notices: string[] = [];
  const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 1 });
  pool.on("connect", (client) => {
    client.on("notice", ({ message }) => notices.push(message ?? ""));
  });
  const verbose = "SET client_min_messages = debug1";
  await pool.query(verbose);
  const database = createDatabase({
    ...{ pool, schema, migrate: "auto", namedStatements: true, most: 1 },
    end: () => pool.end(),
  });
  await makePartitions(database, keep, -1);
  await database.close();
  expect(await partitionsOf(schema)).toEqual([first, last]);
  const proven = notices.filter((notice) => notice.includes("is implied by existing constraints"));
  expect(proven).toHaveLength(2);
  expect(await promisesOf(schema)).toEqual([]);
  await stepAt(store, first.from);
});

it("looks for Steps of new partitions without reading the default partition, and checks it without hurry", async () => {
  const { schema } = await openMigrated();
  const pool = createPool();
  const sent: PostgresQuery[] = [];
  const plans: string[] = [];
  const watching = poolQuerying(pool, (query) => (asked, answered) => {
    sent.push(asked);
    if (!asked.text.includes("LATERAL")) return query(asked, answered);
    const text = `EXPLAIN (COSTS OFF) ${asked.text}`;
    query({ text, values: asked.values ?? [] }, (error, result) => {
      plans.push(JSON.stringify(result?.rows ?? error));
      query(asked, answered);
    });
  });
  await query(`INSERT INTO ${schema}.organizations (id, salt)
    SELECT 'many-' || n, '' FROM generate_series(1, 1000) AS n`);
  const database = createDatabase({
    ...{ pool: watching, schema, migrate: "auto", namedStatements: true, most: null },
    end: async () => {},
  });
  await makePartitions(database, keep, -1);
  await database.close();
  expect(await partitionsOf(schema)).toHaveLength(2);
  expect(plans).toHaveLength(3);
  for (const plan of plans) expect(plan).not.toContain("Seq Scan on steps_rest");
  const checks = sent.filter(({ text }) => text.includes("VALIDATE"));
  expect(checks.map(({ query_timeout }) => query_timeout)).toEqual([1_800_000]);
  expect(sent.map(({ text }) => text)).toContain("SET LOCAL statement_timeout = 1800000");
});

it("finishes the work of a killed process, and removes a constraint that it will not use", async () => {
  const { store, schema } = await openMigrated();
  const promise = (name: string, check: string) =>
    query(`ALTER TABLE ${schema}.steps_rest
      ADD CONSTRAINT steps_rest_without_${name} CHECK (${check}) NOT VALID`);
  await promise("long_ago", "id < '01' OR id >= '02'");
  await sweep(store, 0);
  expect(await promisesOf(schema)).toEqual([]);
  expect(await partitionsOf(schema)).toHaveLength(2);
  await promise("nothing_to_come", "id < '03' OR id >= '04'");
  await sweep(store, 0);
  expect(await promisesOf(schema)).toEqual([]);
});

it("leaves Steps in the default partition if they opened before their partition existed", async () => {
  const { store, schema } = await openMigrated();
  const [first] = missingRanges([], { now: Date.now(), keep });
  if (!first) return expect.fail("Nothing is missing.");
  const id = await stepAt(store, first.from);
  expect(await sweep(store, 0)).toEqual({ removed: 0, next: null });
  expect(await partitionsOf(schema)).toEqual([]);
  expect(await stepIds(store)).toEqual([id]);
  expect(await sweep(store, first.from + keep + 1)).toEqual({ removed: 1, next: null });
  await sweep(store, 0);
  expect(await partitionsOf(schema)).toHaveLength(2);
});
