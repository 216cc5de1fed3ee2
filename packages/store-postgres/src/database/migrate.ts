import { readRow, schemaVersion } from "@tollgate/store-sql";
import { type Connection, longestAnswer } from "./connection.ts";
import { PostgresFailure } from "./failure.ts";
import { postgresSchema } from "./schema.ts";
import { createQualify } from "./schema-name.ts";

/** Creates or upgrades the schema, and its function, in the open transaction, which other processes wait for. */
export async function migrate(
  connection: Connection,
  schema: string,
  commit: string,
): Promise<void> {
  if ((await readVersion(connection, schema)) === schemaVersion) return;
  const exec = (sql: string): Promise<void> => connection.exec(sql, longestAnswer.migration);
  await exec(
    `SET LOCAL statement_timeout = ${longestAnswer.migration}; SET LOCAL lock_timeout = 0;
     SELECT pg_advisory_xact_lock(hashtextextended('tollgate migration of ${schema}', 0))`,
  );
  // Another process may have been first, so the version counts only once the lock is held.
  const version = await readVersion(connection, schema);
  if (version === schemaVersion) return;
  await exec(`CREATE SCHEMA IF NOT EXISTS ${schema}; SET LOCAL search_path TO ${schema}`);
  for (const [to, statements] of postgresSchema()) {
    if (to > version) await exec(statements.join(";\n"));
  }
  await exec(createQualify(schema)(commit));
  await exec(
    version === 0
      ? `CREATE TABLE tollgate_schema (version BIGINT NOT NULL);
         INSERT INTO tollgate_schema (version) VALUES (${schemaVersion})`
      : `UPDATE tollgate_schema SET version = ${schemaVersion}`,
  );
}

/** Refuses a schema that is not this release's. */
export async function requireSchema(connection: Connection, schema: string): Promise<void> {
  const version = await readVersion(connection, schema);
  if (version === schemaVersion) return;
  throw new PostgresFailure(
    version === 0
      ? `there is no schema ${schema} yet; call migrate() first`
      : `schema ${schema} has version ${version}, made by an older release; call migrate() first`,
  );
}

/** 0 where there is no schema. */
async function readVersion(connection: Connection, schema: string): Promise<number> {
  const table = `${schema}.tollgate_schema`;
  // A plain read: what resolves names may still miss a table that was made while the lock was waited for.
  const found = await connection.get(
    "SELECT 1 AS found FROM pg_tables WHERE schemaname = :schema AND tablename = 'tollgate_schema'",
    { schema },
  );
  if (found === undefined) return 0;
  const row = await connection.get(`SELECT version FROM ${table}`, {});
  const version = readRow(row).integer("version");
  if (version > schemaVersion)
    throw new PostgresFailure(
      `schema ${schema} has version ${version}, made by a newer release; this one knows version ${schemaVersion}`,
    );
  return version;
}
