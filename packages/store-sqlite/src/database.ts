import type { StoreStatus } from "@tollgate/core/store";
import { needingMigration, readRow, schemaSteps, schemaVersion } from "@tollgate/store-sql";
import {
  createConnection,
  rollBack,
  type SqliteClient,
  type SqliteConnection,
} from "./connection.ts";
import { storeFailure, waitWhileBusy } from "./failure.ts";
import { createGroupCommit, type WriteOperation } from "./group-commit.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";
import { createTransactions, type Transactions } from "./transaction.ts";

/** The connection of a store, opened on first use. */
export interface Database {
  migrate(mode?: "auto" | "check"): Promise<void>;
  /** Resolves when the write's transaction is on disk. Writes queued together share one. */
  write<Result>(operation: WriteOperation<Result>): Promise<Result>;
  /** Runs a write that deletes content. Soon after, the deleted bytes are removed from the write-ahead log too. */
  erase<Result>(operation: WriteOperation<Result>): Promise<Result>;
  read<Result>(query: (connection: SqliteConnection) => Result): Promise<Result>;
  close(): Promise<void>;
  status(): StoreStatus;
}

/** How to open the connection, and whether the store closes it. */
interface ClientSource {
  readonly open: () => SqliteClient;
  /** The file that opening would create; null if it exists. */
  readonly missingFile: () => string | null;
  readonly ownsClient: boolean;
}

export function createDatabase({ open, missingFile, ownsClient }: ClientSource): Database {
  let opened: SqliteConnection | null = null;
  let transactions: Transactions | null = null;
  let isCurrent = false;
  let closed = false;

  const connect = (): SqliteConnection => {
    if (closed) throw storeFailure("the store is closed");
    opened ??= connectTo(open, ownsClient);
    return opened;
  };
  const ready = (): SqliteConnection => {
    const connection = connect();
    if (!isCurrent) requireSchema(connection);
    isCurrent = true;
    return connection;
  };
  const transact: Transactions["run"] = (work) => {
    transactions ??= createTransactions(ready());
    return transactions.run(work);
  };
  const groupCommit = createGroupCommit({
    immediately: transact,
    whenUnlocked: (work) => waitWhileBusy(() => transact(work)),
    isShared: () => transactions?.isShared() ?? false,
  });

  const write = <Result>(operation: WriteOperation<Result>): Promise<Result> =>
    closed ? Promise.reject(storeFailure("the store is closed")) : groupCommit.write(operation);
  const log = createLogCleaner(() => opened);

  return {
    async migrate(mode = "auto") {
      // Opening a missing file would create it.
      const missing = mode === "check" && !opened ? missingFile() : null;
      if (missing !== null)
        throw needingMigration(storeFailure, `the database doesn't exist yet at ${missing}`);
      await waitWhileBusy(() => (mode === "check" ? requireSchema : migrate)(connect()));
    },
    write,
    async erase(operation) {
      const result = await write(operation);
      log.cleanSoon();
      return result;
    },
    read: (query) => waitWhileBusy(() => query(ready())),
    status: () => ({ waiting: groupCommit.waiting(), inUse: opened ? 1 : 0, most: 1 }),
    async close() {
      await groupCommit.drained();
      closed = true;
      log.close();
      if (ownsClient) opened?.close();
      [opened, transactions] = [null, null];
    },
  };
}

function connectTo(open: () => SqliteClient, ownsClient: boolean): SqliteConnection {
  const client = open();
  try {
    return createConnection(client);
  } catch (error) {
    if (ownsClient) client.close();
    throw error;
  }
}

/** Creates or upgrades the schema in one transaction, for which other processes wait. Does nothing if it is current. */
function migrate(connection: SqliteConnection): void {
  if (readVersion(connection) === schemaVersion) return;
  connection.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have upgraded it, so the version counts only once the lock is held.
    const version = readVersion(connection);
    for (const [to, statements] of schemaSteps(sqliteDialect)) {
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
function requireSchema(connection: SqliteConnection): void {
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

/** Empties the write-ahead log after deletions, because it still contains the deleted bytes. */
interface LogCleaner {
  cleanSoon(): void;
  /** Tries one last time if a cleaning is due. */
  close(): void;
}

/** Deletions within this time share one checkpoint, which delays no request. Milliseconds. */
const delay = 1_000;
/** The log can't be emptied while another process reads or writes. After these tries, the next deletion starts again. */
const maxTries = 60;

function createLogCleaner(connection: () => SqliteConnection | null): LogCleaner {
  let timer: NodeJS.Timeout | null = null;
  let tries = 0;

  function clean(): void {
    timer = null;
    if (!isEmptied(connection()) && ++tries < maxTries) schedule();
  }
  function schedule(): void {
    timer ??= setTimeout(clean, delay).unref();
  }
  return {
    cleanSoon() {
      tries = 0;
      schedule();
    },
    close() {
      if (timer === null) return;
      clearTimeout(timer);
      isEmptied(connection());
    },
  };
}

function isEmptied(connection: SqliteConnection | null): boolean {
  if (connection === null) return true;
  try {
    const [row] = connection.query("PRAGMA wal_checkpoint(TRUNCATE)", {});
    return readRow(row).integer("busy") === 0;
  } catch {
    return false;
  }
}
