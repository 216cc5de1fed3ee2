import { needingMigration, readRow, schemaVersion } from "@tollgate/store-sql";
import { type Connection, queryTimeouts } from "./connection.ts";
import { PostgresFailure } from "./failure.ts";
import { postgresSchema } from "./postgres-dialect.ts";
import { createQualify } from "./schema-name.ts";

/** The oldest release that the store is tested on. */
const oldestRelease = 15;

/** The encodings that store every text. SQL_ASCII stores its bytes as they come. */
const encodings: readonly string[] = ["UTF8", "SQL_ASCII"];

/** Creates or upgrades the schema and its function in the open transaction; other processes wait for it. */
export async function migrate(
  connection: Connection,
  schema: string,
  createCommit: (release: number) => string,
): Promise<void> {
  const release = await requireServer(connection);
  if ((await readVersion(connection, schema)) === schemaVersion) return;
  const exec = (sql: string): Promise<void> => connection.exec(sql, queryTimeouts.migration);
  await exec(
    `SET LOCAL statement_timeout = ${queryTimeouts.migration}; SET LOCAL lock_timeout = 0;
     SELECT pg_advisory_xact_lock(hashtextextended('tollgate migration of ${schema}', 0))`,
  );
  // Another process may have migrated first, so the version counts only once the lock is held.
  const version = await readVersion(connection, schema);
  if (version === schemaVersion) return;
  await exec(`CREATE SCHEMA IF NOT EXISTS ${schema}; SET LOCAL search_path TO ${schema}`);
  for (const [to, statements] of postgresSchema()) {
    if (to > version) await exec(statements.join(";\n"));
  }
  await exec(createQualify(schema)(createCommit(release)));
  await exec(
    version === 0
      ? `CREATE TABLE tollgate_schema (version BIGINT NOT NULL);
         INSERT INTO tollgate_schema (version) VALUES (${schemaVersion})`
      : `UPDATE tollgate_schema SET version = ${schemaVersion}`,
  );
}

/** Rejects a server or a database that can't serve, and a schema of another release. */
export async function requireSchema(connection: Connection, schema: string): Promise<void> {
  await requireServer(connection);
  const version = await readVersion(connection, schema);
  if (version === schemaVersion) return;
  throw needingMigration(
    (problem) => new PostgresFailure(problem),
    version === 0
      ? `schema ${schema} does not exist`
      : `schema ${schema} has version ${version}, made by an older release`,
  );
}

/** Returns the server's release. Rejects one that is too old, and a database that can't store every text. */
async function requireServer(connection: Connection): Promise<number> {
  const row = readRow(
    await connection.get(
      `SELECT CAST(current_setting('server_version_num') AS BIGINT) AS number,
        current_setting('server_encoding') AS encoding`,
      {},
    ),
  );
  const release = Math.floor(row.integer("number") / 10_000);
  if (release < oldestRelease)
    throw new PostgresFailure(
      `the server runs PostgreSQL ${release}; use PostgreSQL ${oldestRelease} or newer`,
    );
  const encoding = row.text("encoding");
  if (!encodings.includes(encoding))
    throw new PostgresFailure(
      `the database has the encoding ${encoding}, which can't store every text; use UTF8`,
    );
  return release;
}

/** 0 if the schema doesn't exist. */
async function readVersion(connection: Connection, schema: string): Promise<number> {
  const table = `${schema}.tollgate_schema`;
  // A plain read: resolving the name may still miss a table that was created while this process waited for the lock.
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
