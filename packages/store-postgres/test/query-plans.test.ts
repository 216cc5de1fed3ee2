import type { Store } from "@tollgate/core/store";
import {
  compileStatement,
  createConditions,
  lists,
  mergedPage,
  playLater,
  type ScriptDatabase,
  selectPage,
  summedSteps,
} from "@tollgate/store-sql";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import {
  hold,
  insertKey,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { postgresDialect } from "../src/database/postgres-dialect.ts";
import { createQualify } from "../src/database/schema-name.ts";
import { postgresStore } from "../src/index.ts";
import { boundAt } from "../src/partitions/partition-range.ts";

/** PostgreSQL's names for the indexes of a partition. */
const stepsByTime = "steps_rest_organization_id_opened_at_sequence_idx";
const stepsBySession = "steps_rest_organization_id_session_id_opened_at_sequence_idx";

const schema = "test_plans";
const qualify = createQualify(schema);
const client = new pg.Client(inject("postgresUrl"));
const store = postgresStore({ url: inject("postgresUrl") }, { schema });

/** PostgreSQL plans a statement without knowing its tables at first, and knows them after this command. */
const statistics = [
  ["before any statistics", null],
  ["with statistics", "ANALYZE"],
] as const;

beforeAll(async () => {
  await client.connect();
  await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await store.migrate();
});

afterAll(async () => {
  await store.close();
  await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await client.end();
});

/** How many rows were read so far through each index and from each table of a schema. */
async function rowsRead(schema: string): Promise<ReadonlyMap<string, number>> {
  await client.query("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()");
  const { rows } = await client.query(
    `SELECT relname AS name, seq_tup_read AS read FROM pg_stat_user_tables WHERE schemaname = $1
     UNION ALL
     SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = $1`,
    [schema],
  );
  return new Map(rows.map(({ name, read }) => [String(name), Number(read)]));
}

async function planOf(text: string): Promise<readonly string[]> {
  const { text: compiled, names } = compileStatement(qualify(text), postgresDialect);
  await client.query("SET plan_cache_mode = force_generic_plan");
  await client.query(`PREPARE page AS ${compiled}`);
  try {
    const values = names.map(() => "NULL").join(", ");
    const { rows } = await client.query(`EXPLAIN (COSTS OFF) EXECUTE page(${values})`);
    return rows.map((row) => String(row["QUERY PLAN"]));
  } finally {
    await client.query("DEALLOCATE page");
  }
}

describe("reads an organization's pages through an index, in its order", () => {
  const conditions = createConditions(postgresDialect);
  const organizationId = "acme";
  const placed = { cursor: null, limit: 20 };

  beforeAll(async () => {
    await client.query("SET enable_seqscan = off; SET enable_bitmapscan = off");
  });
  afterAll(async () => {
    await client.query("RESET enable_seqscan; RESET enable_bitmapscan");
  });

  it.each([
    ["keys", lists.keys, conditions.ofKeys({ organizationId }), "api_keys_by_time"],
    [
      "keys of a user",
      lists.keys,
      conditions.ofKeys({ organizationId, userId: "u" }),
      "api_keys_by_user",
    ],
    ["Steps", lists.steps, conditions.ofSteps({ organizationId, from: 1, to: 2 }), stepsByTime],
    [
      "Steps of a Session",
      lists.steps,
      conditions.ofSteps({ organizationId, sessionId: ["s"] }),
      stepsBySession,
    ],
    ["decisions", lists.decisions, conditions.ofDecisions({ organizationId }), "decisions_by_time"],
    ["changes", lists.changes, conditions.ofChanges({ organizationId }), "leaves_changes"],
    [
      "changes of all organizations",
      lists.changes,
      conditions.ofChanges({ organizationId: null }),
      "leaves_changes_of_all",
    ],
    ["a summary", summedSteps, conditions.ofSummary({ organizationId, by: [] }), stepsByTime],
    [
      "Sessions of a key",
      lists.sessions,
      conditions.ofSessions({ organizationId, keyId: "k", source: "api" }),
      "sessions_by_update",
    ],
    [
      "counters",
      lists.counters,
      conditions.ofCounters({ budgetId: "b", subject: "" }),
      "budget_counters_pkey",
    ],
  ] as const)("%s", async (_name, list, where, index) => {
    const plan = await planOf(selectPage(list, where, placed).text);
    expect(plan.filter((line) => /Seq Scan|Sort \(|^ *-> +Sort$/.test(line))).toEqual([]);
    expect(plan.some((line) => line.includes(`using ${index}`))).toBe(true);
  });
});

/** The tables that contain rows themselves, without their partitioned parents. */
async function tablesOf(schema: string): Promise<readonly string[]> {
  const { rows } = await client.query(
    "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = $1::regnamespace",
    [schema],
  );
  return rows.map(({ name }) => String(name));
}

/** A schema without automatic statistics. */
async function createUnobserved(schema: string): Promise<Store> {
  await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  const store = postgresStore({ url: inject("postgresUrl") }, { schema });
  await store.migrate();
  for (const name of await tablesOf(schema))
    await client.query(`ALTER TABLE ${schema}.${name} SET (autovacuum_enabled = false)`);
  await insertKey(store);
  return store;
}

/** Sessions of the organization's other keys. */
async function insertOtherSessions(schema: string, count: number): Promise<void> {
  await client.query(
    `INSERT INTO ${schema}.sessions (organization_id, id, user_id, key_id, source, head, length, created_at,
       updated_at, updated, in_flight, turn_id, branched_from_session_id, common_length, data_classes)
     SELECT 'acme', 'other ' || n, 'eve', 'other key', 'api', '', 3, 1, 1, -n, 0, 'turn', NULL, 0, '[]'
     FROM generate_series(1, $1::INTEGER) AS n`,
    [count],
  );
}

/** Runs a command on every table, so that the server plans again with its current statistics. */
async function learn(schema: string, command: string): Promise<void> {
  const names = ["steps_rest", "sessions"];
  await client.query(`${command} ${names.map((name) => `${schema}.${name}`).join(", ")}`);
}

/** Waits until every backend of a schema has reported its statistics. */
async function settledStatistics(schema: string): Promise<ReadonlyMap<string, number>> {
  for (;;) {
    const { rows } = await client.query(
      "SELECT FROM pg_stat_activity WHERE application_name = 'tollgate' AND query LIKE $1",
      [`%${schema}%`],
    );
    if (rows.length === 0) return rowsRead(schema);
  }
}

describe("opening and settling read no more rows as the tables grow", () => {
  it.each([
    ["before any statistics", null, 0],
    ["with the sizes of one row known", "VACUUM", 1],
    ["with statistics of one row", "ANALYZE", 1],
    ["with statistics of a few rows", "ANALYZE", 11],
    ["with the sizes of some more known", "VACUUM", 121],
    ["with statistics of some more", "VACUUM ANALYZE", 121],
  ] as const)("%s", async (name, command, learnedAt) => {
    const own = `test_plans_${name.replaceAll(" ", "_")}`;
    const store = await createUnobserved(own);
    // Each creates a Session, a Turn, a Step and three records; one key and one budget serve them all.
    const count = 301;
    let together = 1;
    for (let at = 0; at < count; at += together) {
      together = at === 0 ? 1 : 10;
      if (command && at === learnedAt) await learn(own, command);
      // By now the server has its plans.
      if (at === 101) await insertOtherSessions(own, 50_000);
      await Promise.all(
        Array.from({ length: together }, async (_, place) => {
          const id = `step ${at + place}`;
          const { transcript, ...intent } = stepIntent(id, [hold(1_000_000)]);
          const considering = { ...transcript, previousSessionId: "session of step 0" };
          await store.openStep({ ...intent, transcript: considering });
          await store.settleStep(stepSettlement(id));
        }),
      );
    }
    await store.close();
    const read = await settledStatistics(own);
    const ofTables = [
      "sessions",
      "steps_rest",
      "turns",
      "transcript_parts",
      "decisions",
      "leaves",
      "holds",
    ];
    expect(ofTables.map((table) => read.get(table))).toEqual(ofTables.map(() => 0));
    for (const index of [
      stepsByTime,
      stepsBySession,
      "branches_by_head",
      "branches_by_history",
      "sessions_by_time",
      "sessions_by_key",
    ])
      expect(read.get(index), index).toBe(0);
    // Each Step reads a few rows by id and its 100 candidates by their index.
    for (const index of ["steps_rest_pkey", "sessions_pkey", "holds_pkey"])
      expect(read.get(index), index).toBeLessThan(count * 6);
    expect(read.get("sessions_by_update")).toBeGreaterThan(count);
    expect(read.get("sessions_by_update")).toBeLessThan(count * 110 * 2);
    await client.query(`DROP SCHEMA ${own} CASCADE`);
  });
});

describe("a rewind of a named Session reads no more rows as its branches grow", () => {
  it.each(statistics)("%s", async (name, command) => {
    const own = `test_plans_branches_${name.replaceAll(" ", "_")}`;
    const store = await createUnobserved(own);
    await store.openStep(stepIntent("first"));
    const root = "session of first";
    const rewind = async (id: string): Promise<void> => {
      const { transcript, ...intent } = stepIntent(id);
      const named = { ...transcript, sessionId: root };
      const opening = await store.openStep({ ...intent, transcript: named });
      expect(opening).toMatchObject({ opened: true, branchedFromSessionId: root });
      await store.settleStep(stepSettlement(id));
    };
    // By now the server has its plans.
    for (let at = 0; at < 8; at++) await rewind(`early ${at}`);
    await client.query(
      `INSERT INTO ${own}.sessions (organization_id, id, user_id, key_id, source, head, length, created_at, updated_at,
         updated, in_flight, turn_id, branched_from_session_id, common_length, root_session_id, history_from_session_id,
         data_classes)
       SELECT 'acme', 'branch ' || n, 'ada', 'key', 'api', sha256(CAST('' || n AS BYTEA)), 3, 1, 1, -n, 0, 'turn', $1, 1,
         $1, $1, '[]'
       FROM generate_series(1, 20000) AS n`,
      [root],
    );
    if (command) await client.query(`${command} ${own}.sessions`);
    const before = await rowsRead(own);
    for (let at = 0; at < 8; at++) await rewind(`late ${at}`);
    await store.close();
    const after = await settledStatistics(own);
    const read = ["sessions", "sessions_pkey", "branches_by_head", "branches_by_history"].map(
      (name) => [name, (after.get(name) ?? 0) - (before.get(name) ?? 0)] as const,
    );
    expect(read.filter(([, rows]) => rows > 400)).toEqual([]);
    await client.query(`DROP SCHEMA ${own} CASCADE`);
  });
});

/**
 * Creates organizations with equally many Steps, all at one time later than the others: only their numbers determine
 * the order.
 */
async function insertStepsOf(organizations: number, steps: number): Promise<void> {
  const { rows } = await client.query(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = $1 AND table_name = 'steps' AND is_nullable = 'NO' AND is_generated = 'NEVER'`,
    [schema],
  );
  const ofType: Readonly<Record<string, string>> = { bigint: "1", bytea: "''" };
  const own: Readonly<Record<string, string>> = {
    organization_id: "'many ' || o",
    id: "o || '/' || n",
    opened_at: "9000000000000",
    sequence: "n * 1000 + o",
    metadata: "'{}'",
    dropped_fields: "'{}'",
  };
  const values = rows.map(({ name, type }) => own[name] ?? ofType[type] ?? "'[]'");
  await client.query(
    `INSERT INTO ${schema}.organizations (id, salt) SELECT 'many ' || o, '' FROM generate_series(1, ${organizations}) o`,
  );
  await client.query(
    `INSERT INTO ${schema}.steps (${rows.map(({ name }) => name).join(", ")}) SELECT ${values.join(", ")}
     FROM generate_series(1, ${organizations}) o, generate_series(1, ${steps}) n`,
  );
}

describe("a page of every organization", () => {
  it("reads one row of each organization, and few more than its own", async () => {
    const [organizations, limit] = [1_200, 10];
    await insertStepsOf(organizations, 30);
    const before = await rowsRead(schema);
    const conditions = createConditions(postgresDialect).ofSteps({ organizationId: null });
    const source = { list: lists.steps, conditions };
    const reads: number[] = [];
    const read: ScriptDatabase["read"] = (script) =>
      playLater(script(), async (ask) => {
        if (ask.wants !== "rows") return expect.fail("A page writes nothing.");
        const { text, names } = compileStatement(qualify(ask.text), postgresDialect);
        const { rows } = await client.query(
          text,
          names.map((name) => ask.parameters[name]),
        );
        reads.push(rows.length);
        return { rows, count: 0 };
      });
    const parts = { list: lists.steps, sources: [source] };
    const { data } = await mergedPage({ read }, parts, { cursor: null, limit }, postgresDialect);
    const last = 30 * 1_000 + organizations;
    expect(data.map((row) => Number(Reflect.get(Object(row), "sequence")))).toEqual(
      Array.from({ length: limit }, (_, at) => last - at),
    );
    // No statement looks at all organizations.
    expect(Math.max(...reads)).toBe(500);
    const after = await rowsRead(schema);
    const found = (after.get(stepsByTime) ?? 0) - (before.get(stepsByTime) ?? 0);
    expect(found).toBeGreaterThanOrEqual(organizations);
    // Rows of other tests, and those that an update left behind, count as well.
    expect(found).toBeLessThan(organizations + 20 * (limit + 1));
  });
});

describe("a chunk of a sweep reads few of many organizations in which nothing is due", () => {
  it.each(statistics)("%s", async (name, command) => {
    const own = `test_plans_sweep_${name.replaceAll(" ", "_")}`;
    const store = await createUnobserved(own);
    await client.query(
      `INSERT INTO ${own}.organizations (id, salt) SELECT 'many ' || n, '' FROM generate_series(1, 20000) AS n`,
    );
    await client.query(
      `INSERT INTO ${own}.sessions (organization_id, id, user_id, key_id, source, head, length, created_at, updated_at,
         updated, in_flight, turn_id, common_length, data_classes)
       SELECT 'many ' || n, 'session', 'ada', 'key', 'api', '', 1, 100, 100, n, 0, 'turn', 1, '[]'
       FROM generate_series(1, 20000) AS n`,
    );
    if (command) await client.query(`${command} ${own}.organizations, ${own}.sessions`);
    const leaf = () => expect.fail("nothing is due");
    const sweep = { at: 100, keep: 0, limit: 9, unfolded: new Map(), leaf };
    const before = await rowsRead(own);
    let from: string | null = "";
    for (const many of [store.steps, store.sessions])
      ({ next: from } = await many.sweep({ ...sweep, from: "many 1" }));
    await store.close();
    expect(from).not.toBeNull();
    const after = await settledStatistics(own);
    const read = [...after].map(([name, rows]) => [name, rows - (before.get(name) ?? 0)] as const);
    expect(read.filter(([, rows]) => rows > 2_000)).toEqual([]);
    await client.query(`DROP SCHEMA ${own} CASCADE`);
  });
});

/** Copies the first Step of a schema under other ids, for an organization. */
async function copyStep(schema: string, organization: string, count: number): Promise<void> {
  const { rows } = await client.query(
    `SELECT column_name AS name FROM information_schema.columns
     WHERE table_schema = $1 AND table_name = 'steps' AND is_generated = 'NEVER'`,
    [schema],
  );
  const names = rows.map(({ name }) => String(name));
  const own: Readonly<Record<string, string>> = {
    organization_id: organization,
    id: "left(id, 24) || lpad(CAST(n AS TEXT), 12, '0')",
  };
  await client.query(
    `INSERT INTO ${schema}.steps (${names.join(", ")}) SELECT ${names.map((name) => own[name] ?? name).join(", ")}
     FROM (SELECT * FROM ${schema}.steps ORDER BY id LIMIT 1) first, generate_series(1, ${count}) n`,
  );
}

const day = 86_400_000;

describe("a sweep finds the Steps of an organization whose sums lack some by an index", () => {
  it.each(statistics)("%s", async (name, command) => {
    const own = `test_plans_held_${name.replaceAll(" ", "_")}`;
    const store = await createUnobserved(own);
    const keep = 30 * day;
    const sweep = (at: number) => {
      const unfolded = new Map([["globex", 0]]);
      const leaf = () => expect.fail("nothing is due");
      return store.steps.sweep({ from: "", at, keep, limit: 9, unfolded, leaf });
    };
    await sweep(0);
    const { rows: partitions } = await client.query(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = '${own}'::regnamespace
         AND relname ~ '^steps_[0-9]{8}$' ORDER BY 1`,
    );
    const partition = String(partitions[0]?.name);
    const at = Date.parse(partition.replace(/^steps_(....)(..)(..)$/, "$1-$2-$3"));
    const id = `${boundAt(at)}-7000-8000-000000000000`;
    await store.openStep({ ...stepIntent(id), at });
    await store.settleStep({ ...stepSettlement(id), at });
    // The other organization's Step is the last of many.
    await copyStep(own, "organization_id", 20_000);
    await copyStep(own, "'globex'", 1);
    if (command) await client.query(`${command} ${own}.steps`);
    const before = await rowsRead(own);
    expect(await sweep(at + 10 * day + keep)).toEqual({ removed: 0, next: null });
    await store.close();
    const after = await settledStatistics(own);
    expect((after.get(partition) ?? 0) - (before.get(partition) ?? 0)).toBeLessThan(100);
    await client.query(`DROP SCHEMA ${own} CASCADE`);
  });
});
