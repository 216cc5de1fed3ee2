import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { resolve } from "node:path";
import {
  addParameters,
  type CompiledStatement,
  compileStatement,
  orderParameters,
  readRow,
  type SqlParameters,
  type SqlValue,
} from "@tollgate/store-sql";
import { isBusy, storeFailure } from "./failure.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";

/**
 * An open SQLite database of `node:sqlite` or better-sqlite3. Only the store may use it: a transaction of the application
 * on the same connection would break the store's.
 */
export interface SqliteClient {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

/** A prepared statement of a SqliteClient. */
export interface SqliteStatement {
  run(...parameters: SqlValue[]): { readonly changes: number | bigint };
  get(...parameters: SqlValue[]): unknown;
  all(...parameters: SqlValue[]): unknown[];
}

/** A prepared connection. Every call runs synchronously, in the open transaction if there is one. */
export interface SqliteConnection {
  readonly file: DatabaseFile;
  exec(sql: string): void;
  /** Runs a statement of constant text, which is prepared once. Returns the number of changed rows. */
  run(text: string, parameters: SqlParameters): number;
  /** Runs an INSERT of one row for all these rows, several per statement. Returns the number of rows it wrote. */
  insertRows(text: string, rows: readonly SqlParameters[]): number;
  get(text: string, parameters: SqlParameters): unknown;
  all(text: string, parameters: SqlParameters): unknown[];
  /** Like `all`, for a text built from a filter. The statement is not cached. */
  query(text: string, parameters: SqlParameters): unknown[];
  close(): void;
}

/** The numbers of rows per INSERT. Each size takes what the larger ones left. */
const insertSizes = [16, 4, 2, 1] as const;

export function createConnection(client: SqliteClient): SqliteConnection {
  prepareClient(client);
  const statement = createStatementCache(client);
  const multiRowInserts = insertSizes.map((count) => ({
    count,
    insert: createStatementCache(client, (text) => withRows(text, count)),
  }));
  const all = ({ statement, names }: Prepared, parameters: SqlParameters): unknown[] =>
    statement.all(...orderParameters(names, parameters));

  return {
    file: watchFile(filePathOf(client)),
    exec(sql) {
      client.exec(sql);
    },
    run(text, parameters) {
      const { statement: prepared, names } = statement(text);
      return Number(prepared.run(...orderParameters(names, parameters)).changes);
    },
    insertRows(text, rows) {
      const { names } = statement(text);
      let [next, written] = [0, 0];
      for (const { count, insert } of multiRowInserts)
        while (rows.length - next >= count) {
          const values: SqlValue[] = [];
          for (const end = next + count; next < end; next++)
            addParameters(values, names, rows[next] ?? {});
          written += Number(insert(text).statement.run(...values).changes);
        }
      return written;
    },
    get(text, parameters) {
      const { statement: prepared, names } = statement(text);
      return prepared.get(...orderParameters(names, parameters));
    },
    all: (text, parameters) => all(statement(text), parameters),
    query: (text, parameters) => all(prepare(client, text), parameters),
    close() {
      client.close();
    },
  };
}

/** Ends the open transaction after an error. */
export function rollBack(connection: SqliteConnection): void {
  try {
    connection.exec("ROLLBACK");
  } catch {
    // After a full disk or an I/O error, SQLite has already rolled back. The first error is the one to report.
  }
}

interface Prepared extends CompiledStatement {
  readonly statement: SqliteStatement;
}

/** Prepares each statement on first use. */
function createStatementCache(
  client: SqliteClient,
  change = (text: string): string => text,
): (text: string) => Prepared {
  const cache = new Map<string, Prepared>();
  return (text) => {
    const known = cache.get(text);
    if (known) return known;
    const prepared = prepare(client, change(text));
    cache.set(text, prepared);
    return prepared;
  };
}

/** Turns an INSERT of one row into one of several. */
function withRows(text: string, count: number): string {
  return text.replace(/VALUES (\([^)]*\))/, (_, row: string) => {
    return `VALUES ${Array.from({ length: count }, () => row).join(", ")}`;
  });
}

function prepare(client: SqliteClient, text: string): Prepared {
  const compiled = compileStatement(text, sqliteDialect);
  return { ...compiled, statement: client.prepare(compiled.text) };
}

/** Older releases can corrupt a database in WAL mode that several connections write. */
const minSqliteVersion = [3, 51, 3] as const;

/**
 * A commit writes whole pages, mostly for a few bytes at the end of a table or index. A checkpoint moves up to 8 MB, which
 * blocks the event loop.
 */
const pageSize = 2048;
const checkpointPages = 4_000;

/**
 * Rejects a SQLite that is too old, then sets up the connection. WAL and `synchronous=FULL` make a commit durable. A busy
 * timeout of 0 leaves waiting to the store, which doesn't block the event loop.
 */
function prepareClient(client: SqliteClient): void {
  requireSqliteVersion(client);
  client.exec("PRAGMA busy_timeout = 0");
  client.exec(`PRAGMA page_size = ${pageSize}`);
  const mode = readFirst(client, "PRAGMA journal_mode = WAL", "journal_mode");
  if (mode !== "wal" && mode !== "memory")
    throw storeFailure(`the database can't use a write-ahead log (its journal mode is ${mode})`);
  client.exec("PRAGMA synchronous = FULL");
  client.exec("PRAGMA foreign_keys = OFF");
  // Overwrites deleted data, so a deleted response is not readable in free pages.
  client.exec("PRAGMA secure_delete = ON");
  client.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`);
}

/** Reads the only column of a statement, which may be the first to read the file. */
function readFirst(client: SqliteClient, statement: string, column: string): string {
  try {
    return readRow(client.prepare(statement).get()).text(column);
  } catch (error) {
    if (isBusy(error)) throw error;
    throw storeFailure(`can't open ${filePathOf(client) || "the database"}`, error);
  }
}

function requireSqliteVersion(client: SqliteClient): void {
  const version = readFirst(client, "SELECT sqlite_version() AS version", "version");
  const parts = version.split(".").map(Number);
  for (const [place, oldest] of minSqliteVersion.entries()) {
    const part = parts[place] ?? 0;
    if (part > oldest) return;
    if (part < oldest)
      throw storeFailure(
        `SQLite ${version} is older than ${minSqliteVersion.join(".")}, the oldest release without a known corruption bug in WAL mode`,
      );
  }
}

/** The path of a connection's file. Empty for an in-memory database. */
function filePathOf(client: SqliteClient): string {
  const databases = client.prepare("PRAGMA database_list").all().map(readRow);
  return databases.find((row) => row.text("name") === "main")?.text("file") ?? "";
}

/**
 * Opens a file with Node's built-in SQLite. Creates a missing file, but not its folder. Only its owner may read a file
 * created here; SQLite gives `-wal` and `-shm` the same mode. An existing file keeps its mode.
 */
export function openFile(filename: string): SqliteClient {
  // Loaded at run time, so bundles for other runtimes still build.
  const sqlite = process.getBuiltinModule("node:sqlite");
  if (!sqlite)
    throw storeFailure("this runtime has no node:sqlite; pass an open database as `client`");
  try {
    createForOwner(filename);
    return new sqlite.DatabaseSync(filename);
  } catch (error) {
    throw storeFailure(`can't open ${filename}`, error);
  }
}

function createForOwner(filename: string): void {
  const missing = missingFile(filename);
  if (missing !== null) closeSync(openSync(missing, "a", 0o600));
}

/** The path of a file that doesn't exist; otherwise null. SQLite itself handles in-memory databases and URIs. */
export function missingFile(filename: string): string | null {
  if (filename === "" || filename === ":memory:" || filename.startsWith("file:")) return null;
  return existsSync(filename) ? null : resolve(filename);
}

/** Detects whether a connection's file was removed or replaced. */
interface DatabaseFile {
  /** Throws if the file was removed or replaced, because writes to it would be lost. */
  check(): void;
}

/** `path` is empty for an in-memory database. */
function watchFile(path: string): DatabaseFile {
  if (path === "") return { check() {} };
  const opened = identityOf(path);
  return {
    check() {
      const now = identityOf(path);
      if (now === null) throw storeFailure("the database file was removed while it was open");
      if (now !== opened) throw storeFailure("the database file was replaced while it was open");
    },
  };
}

function identityOf(path: string): string | null {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat ? `${stat.dev}/${stat.ino}` : null;
}
