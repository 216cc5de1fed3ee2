import { onTestFinished } from "vitest";
import type { SqliteClient } from "../src/index.ts";

/** An open better-sqlite3 database that is closed when the test ends. */
export async function openBetterSqlite(filename: string): Promise<SqliteClient> {
  // An older Node crashes on the native module instead of rejecting it, so don't import it there.
  if (Number(process.versions["napi"]) < 10)
    throw new Error("better-sqlite3 needs Node 22.14 or later");
  const { default: Database } = await import("better-sqlite3");
  const database = new Database(filename);
  onTestFinished(() => {
    database.close();
  });
  return database;
}
