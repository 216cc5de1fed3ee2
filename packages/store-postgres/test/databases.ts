import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, inject, onTestFailed, onTestFinished } from "vitest";
import { insertKey } from "../../store-engine/test/step-intents.ts";
import type { PostgresClient } from "../src/database/client.ts";
import { type PostgresPool, postgresStore } from "../src/index.ts";

/** Creates a schema for one test, and drops it when the test ends. */
export function freshSchema(): string {
  const schema = `test_${randomBytes(8).toString("hex")}`;
  onTestFinished(async () => {
    await withClient((client) => client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`));
  });
  return schema;
}

/**
 * One schema for all tests of a file: each test finds it migrated and empty. After a failed test the schema is
 * replaced, because a test that timed out may still write to the old one.
 */
export function sharedSchema(): () => Promise<string> {
  const schemas: string[] = [];
  const client = new pg.Client(inject("postgresUrl"));
  let current: string | null = null;
  beforeAll(() => client.connect());
  afterAll(async () => {
    for (const schema of schemas) await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.end();
  });
  return async () => {
    onTestFailed(() => {
      current = null;
    });
    if (current === null) {
      current = `test_${randomBytes(8).toString("hex")}`;
      schemas.push(current);
      await migrated(current);
    } else {
      await client.query(emptying(current));
    }
    return current;
  };
}

/** Creates the tables of a schema. */
export async function migrated(schema: string): Promise<void> {
  const store = postgresStore({ url: inject("postgresUrl") }, { schema });
  await store.migrate();
  await store.close();
}

function emptying(schema: string): string {
  return `DO $body$
    DECLARE
      one RECORD;
    BEGIN
      FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = '${schema}'
        AND tablename NOT IN ('tollgate_schema', 'store_state')
      LOOP
        EXECUTE format('DELETE FROM ${schema}.%I', one.tablename);
      END LOOP;
      UPDATE ${schema}.store_state SET budgets_version = 0, policy_version = NULL;
    END $body$`;
}

/** A connection that bypasses the store, closed when `use` is done. */
export async function withClient<Result>(
  use: (client: pg.Client) => Promise<Result>,
  url = inject("postgresUrl"),
): Promise<Result> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/** A pool on the server of the tests, which ends with its test. */
export function createPool(options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: inject("postgresUrl"), ...options });
  onTestFinished(() => pool.end());
  return pool;
}

/** A migrated store over a pool, in a schema of its own, with the key of `stepIntent`. It closes when its test ends. */
export async function storeOver(pool: PostgresPool): Promise<ReturnType<typeof postgresStore>> {
  const store = postgresStore({ pool }, { schema: freshSchema() });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  return store;
}

/** A pool whose clients query with `query`, which gets the real one. Everything else is unchanged. */
export function poolQuerying(
  pool: PostgresPool,
  query: (query: PostgresClient["query"]) => PostgresClient["query"],
): PostgresPool {
  return {
    on: (event, listener) => pool.on(event, listener),
    off: (event, listener) => pool.off(event, listener),
    connect: (taken) =>
      pool.connect((error, client) => {
        if (!client) return taken(error, undefined);
        taken(error, {
          on: (event, listener) => client.on(event, listener),
          off: (event, listener) => client.off(event, listener),
          release: (destroy) => client.release(destroy),
          query: query((sent, answered) => client.query(sent, answered)),
        });
      }),
  };
}
