import { DatabaseSync } from "node:sqlite";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import pg from "pg";
import { fillingStatements, idOf, lastSequence, type Size, type Words } from "./history.ts";

const sqliteWords: Words = {
  series: (count) =>
    `(WITH RECURSIVE series (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ${count})
      SELECT n FROM series)`,
  digest: (number) => `CAST(printf('%032d', ${number}) AS BLOB)`,
  bytes: (text) => `CAST(${text} AS BLOB)`,
  carriesPermits: true,
};

/** Creates a file with a history of this size. It is disposable, so nothing is flushed. */
export async function fillSqlite(filename: string, size: Size): Promise<void> {
  const store = sqliteStore({ filename });
  await store.migrate();
  await store.close();
  const client = new DatabaseSync(filename);
  client.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000");
  client.exec("BEGIN");
  for (const statement of fillingStatements(size, sqliteWords)) client.exec(statement);
  client.exec("COMMIT");
  client.close();
}

/** The number of partitions for Steps, as with a retention of activity. */
const parts = 10;

const postgresWords: Words = {
  series: (count) => `generate_series(0::BIGINT, ${count - 1}) AS series (n)`,
  digest: (number) => `convert_to(lpad((${number})::TEXT, 32, '0'), 'UTF8')`,
  carriesPermits: false,
  bytes: (text) => `convert_to(${text}, 'UTF8')`,
};

/** Creates a schema with a history of this size, and the statistics that the server would collect later. */
export async function fillPostgres(place: {
  readonly url: string;
  readonly schema: string;
  readonly size: Size;
}): Promise<void> {
  const { url, schema, size } = place;
  const store = postgresStore({ url }, { schema });
  await store.migrate();
  await store.close();
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`SET search_path TO ${schema}; SET synchronous_commit = off`);
  for (let part = 0; part < parts; part++) await client.query(partition(size, part));
  for (const statement of fillingStatements(size, postgresWords)) await client.query(statement);
  await client.query(`SELECT setval('sequence', ${lastSequence(size)})`);
  await client.query("VACUUM ANALYZE");
  await client.end();
}

function partition({ steps }: Size, part: number): string {
  const bound = (place: number): string =>
    `('${idOf("step", Math.floor((steps * place) / parts))}')`;
  return `CREATE TABLE steps_part_${part} PARTITION OF steps
    FOR VALUES FROM ${bound(part)} TO ${bound(part + 1)}`;
}
