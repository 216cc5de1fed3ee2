import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject, onTestFinished } from "vitest";
import { type PostgresStoreOptions, postgresStore } from "../src/index.ts";

/** A schema of its own, which goes when the test ends. */
export function freshSchema(): string {
  const schema = `test_${randomBytes(8).toString("hex")}`;
  onTestFinished(async () => {
    await withClient((client) => client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`));
  });
  return schema;
}

/** A store on a fresh schema of the run's server. */
export function freshStore(options: PostgresStoreOptions = {}) {
  return postgresStore({ url: inject("postgresUrl") }, { schema: freshSchema(), ...options });
}

/** A connection past the store, closed when `use` is done. */
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
