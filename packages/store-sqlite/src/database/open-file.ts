import type { SqliteClient } from "./client.ts";
import { storeFailure } from "./failure.ts";

/** Opens a file with the SQLite that Node carries; it is created when it is missing, its folder is not. */
export function openFile(filename: string): SqliteClient {
  // Asked for at run time, so that a bundle for another runtime can still be built.
  const sqlite = process.getBuiltinModule("node:sqlite");
  if (!sqlite)
    throw storeFailure("this runtime has no node:sqlite; pass an open database as client");
  try {
    return new sqlite.DatabaseSync(filename);
  } catch (error) {
    throw storeFailure(`cannot open ${filename}`, error);
  }
}
