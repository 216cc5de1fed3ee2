import { needingMigration, readRow, schemaSteps, schemaVersion } from "@tollgate/store-sql";
import { rollBack, type SqliteConnection } from "./connection.ts";
import { storeFailure } from "./failure.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";
import { embeddedHoldColumns } from "./step-row.ts";

/** Creates or upgrades the schema in one transaction, for which other processes wait. Does nothing if it is current. */
export function migrate(connection: SqliteConnection): void {
  if (readVersion(connection) === schemaVersion) return;
  connection.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have upgraded it, so the version counts only once the lock is held.
    const version = readVersion(connection);
    for (const [to, statements] of sqliteSchema()) {
      if (to <= version) continue;
      for (const statement of statements) connection.exec(statement);
    }
    writeVersion(connection, version);
    connection.exec("COMMIT");
  } catch (error) {
    rollBack(connection);
    throw error;
  }
}

/** Rejects a database whose schema is not the current one. */
export function requireSchema(connection: SqliteConnection): void {
  if (readVersion(connection) !== schemaVersion)
    throw needingMigration(storeFailure, "the database has no current schema");
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
      `the database has schema version ${version} of a newer release; this release supports version ${schemaVersion}`,
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

const columns =
  "organization_id, step_id, attempt, budget_id, subject, period_start, unit, amount, settled";

/** Indexes and views that only SQLite has, by the version that adds them. */
const additions: ReadonlyMap<number, readonly string[]> = new Map([
  [
    1,
    [
      "CREATE INDEX steps_open ON steps (process_id, id) WHERE outcome = 'open'",
      // For reconciling, which reads corrections in the order they were made.
      "CREATE INDEX corrections_in_order ON corrections (sequence)",
      "CREATE INDEX leaves_by_organization ON leaves (organization_id)",
      `CREATE VIEW open_steps AS
        SELECT process_id, id AS step_id, organization_id, renewal, output_tokens FROM steps
        WHERE outcome = 'open'`,
      `CREATE VIEW turns AS SELECT organization_id, id, session_id FROM kept_turns
        UNION ALL SELECT organization_id, id, session_id FROM steps WHERE turn_id = id`,
      `CREATE VIEW holds AS SELECT ${columns} FROM kept_holds
        UNION ALL SELECT ${embeddedHoldColumns} FROM steps s CROSS JOIN json_each(s.held) h`,
    ],
  ],
]);

/** The statements that upgrade to each version from the one before. */
function sqliteSchema(): ReadonlyMap<number, readonly string[]> {
  return new Map(
    [...schemaSteps(sqliteDialect)].map(([version, statements]) => [
      version,
      [...statements, ...(additions.get(version) ?? [])],
    ]),
  );
}
