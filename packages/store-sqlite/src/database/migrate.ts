import { readRow, schemaVersion } from "@tollgate/store-sql";
import type { SqliteConnection } from "./connection.ts";
import { storeFailure } from "./failure.ts";
import { sqliteSchema } from "./schema.ts";

/** Creates or upgrades the schema, in one transaction that other processes wait for. Does nothing when it is current. */
export function migrate(connection: SqliteConnection): void {
  if (readVersion(connection) === schemaVersion) return;
  connection.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have been first, so the version counts only once the lock is held.
    const version = readVersion(connection);
    for (const [to, statements] of sqliteSchema()) {
      if (to <= version) continue;
      for (const statement of statements) connection.exec(statement);
    }
    writeVersion(connection, version);
    connection.exec("COMMIT");
  } catch (error) {
    connection.exec("ROLLBACK");
    throw error;
  }
}

/** Refuses a database that `migrate` has not brought to this release's schema. */
export function requireSchema(connection: SqliteConnection): void {
  if (readVersion(connection) !== schemaVersion)
    throw storeFailure("the database has no current schema yet; call migrate() first");
}

/** 0 for a database without a schema. */
function readVersion(connection: SqliteConnection): number {
  const table = connection.get(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'tollgate_schema'",
    {},
  );
  if (table === undefined) return 0;
  const version = readRow(connection.get("SELECT version FROM tollgate_schema", {})).integer(
    "version",
  );
  if (version > schemaVersion)
    throw storeFailure(
      `the database has schema version ${version}, made by a newer release; this one knows version ${schemaVersion}`,
    );
  return version;
}

function writeVersion(connection: SqliteConnection, from: number): void {
  if (from === 0) {
    connection.exec("CREATE TABLE tollgate_schema (version INTEGER NOT NULL) STRICT");
    connection.exec(`INSERT INTO tollgate_schema (version) VALUES (${schemaVersion})`);
  } else if (from < schemaVersion) {
    connection.exec(`UPDATE tollgate_schema SET version = ${schemaVersion}`);
  }
}
