import { closeSync, existsSync, openSync } from "node:fs";
import type { SqliteClient } from "./client.ts";
import { storeFailure } from "./failure.ts";

/**
 * Opens a file with the SQLite that Node carries; it is created when it is missing, its folder is not. Only its owner may
 * read a file that is created here; SQLite gives `-wal` and `-shm` the same mode. An existing file keeps its mode.
 */
export function openFile(filename: string): SqliteClient {
  // Asked for at run time, so that a bundle for another runtime can still be built.
  const sqlite = process.getBuiltinModule("node:sqlite");
  if (!sqlite)
    throw storeFailure("this runtime has no node:sqlite; pass an open database as client");
  try {
    createForOwner(filename);
    return new sqlite.DatabaseSync(filename);
  } catch (error) {
    throw storeFailure(`cannot open ${filename}`, error);
  }
}

/** A database in memory and a URI are left to SQLite. */
function createForOwner(filename: string): void {
  if (filename === "" || filename === ":memory:" || filename.startsWith("file:")) return;
  if (!existsSync(filename)) closeSync(openSync(filename, "a", 0o600));
}
