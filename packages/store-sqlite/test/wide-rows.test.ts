import { DatabaseSync } from "node:sqlite";
import { schemaSteps } from "@tollgate/store-sql";
import { expect, it } from "vitest";
import { sqliteDialect } from "../src/database/sqlite-dialect.ts";
import { sqliteStore } from "../src/index.ts";

const client = new DatabaseSync(":memory:");
const wideTables = ["steps", "decisions", "transcript_parts", "leaves"];

it("keeps the wide rows of a request in the order in which they come, and every index of theirs", async () => {
  await sqliteStore({ client }).migrate();
  const older = new DatabaseSync(":memory:");
  for (const statement of schemaSteps(sqliteDialect).get(1) ?? []) older.exec(statement);
  for (const table of wideTables) {
    expect(() => client.prepare(`SELECT rowid FROM ${table}`), table).not.toThrow();
    expect(indexesOf(client, table), table).toEqual(
      expect.arrayContaining([...indexesOf(older, table)]),
    );
  }
});

/** The statements of a table's indexes. */
function indexesOf(database: DatabaseSync, table: string): readonly unknown[] {
  const text =
    "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL";
  return database
    .prepare(text)
    .all(table)
    .map(({ sql }) => sql);
}
