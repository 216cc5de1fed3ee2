import { readRow } from "@tollgate/store-sql";
import type { SqliteClient } from "./client.ts";
import { storeFailure } from "./failure.ts";

/** Older releases can corrupt a database in WAL mode that several connections write. */
const minSqliteVersion = [3, 51, 3] as const;

/** A commit writes whole pages, most of them for a few bytes at the end of a table or an index. A checkpoint moves up to 8 MB. */
const pageSize = 4_096;
const checkpointPages = 2_000;

/**
 * Refuses a library that is too old and sets the connection up. WAL and `synchronous=FULL` make a commit durable; a
 * busy timeout of 0 leaves waiting to the store, which does not block the event loop.
 */
export function prepareClient(client: SqliteClient): void {
  requireSqliteVersion(client);
  client.exec("PRAGMA busy_timeout = 0");
  client.exec(`PRAGMA page_size = ${pageSize}`);
  const mode = readRow(client.prepare("PRAGMA journal_mode = WAL").get()).text("journal_mode");
  if (mode !== "wal" && mode !== "memory")
    throw storeFailure(`the database cannot use a write-ahead log (its journal mode is ${mode})`);
  client.exec("PRAGMA synchronous = FULL");
  client.exec("PRAGMA foreign_keys = OFF");
  // What is deleted is overwritten, so that a deleted response is not left readable in free pages.
  client.exec("PRAGMA secure_delete = ON");
  client.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`);
}

function requireSqliteVersion(client: SqliteClient): void {
  const version = readRow(client.prepare("SELECT sqlite_version() AS version").get()).text(
    "version",
  );
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

/** The path of the file behind a connection, empty for a database in memory. */
export function filePathOf(client: SqliteClient): string {
  const databases = client.prepare("PRAGMA database_list").all().map(readRow);
  return databases.find((row) => row.text("name") === "main")?.text("file") ?? "";
}
