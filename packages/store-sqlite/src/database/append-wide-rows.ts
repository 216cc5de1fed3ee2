import { type RowReader, readRow } from "@tollgate/store-sql";
import type { Connection } from "./connection.ts";

/** Tables of wide rows: what a request writes of them is most of what it writes at all. */
const wideTables = ["steps", "decisions", "transcript_parts", "leaves"] as const;

const withoutRowid = ", WITHOUT ROWID";

/**
 * Makes the wide tables anew in the order in which rows come, with their keys beside them. Sorted by its key, such a
 * table has its rows in its inner pages, too, so that few fit below each, and a commit writes many pages of it again.
 */
export function appendWideRows(connection: Connection): void {
  for (const table of wideTables) makeAnew(connection, table);
}

function makeAnew(connection: Connection, table: string): void {
  const definition = definitionsOf(connection, "table", table).join();
  const indexes = definitionsOf(connection, "index", table);
  const columns = columnsOf(connection, table).join(", ");
  connection.exec(`ALTER TABLE ${table} RENAME TO ${table}_before`);
  connection.exec(definition.slice(0, -withoutRowid.length));
  connection.exec(`INSERT INTO ${table} (${columns}) SELECT ${columns} FROM ${table}_before`);
  connection.exec(`DROP TABLE ${table}_before`);
  for (const index of indexes) connection.exec(index);
}

/** The statements that made a table or its indexes, in their order; a key's own index has none. */
function definitionsOf(
  connection: Connection,
  type: "table" | "index",
  table: string,
): readonly string[] {
  return rows(
    connection,
    `SELECT sql FROM sqlite_master WHERE type = '${type}' AND tbl_name = '${table}'
      AND sql IS NOT NULL ORDER BY rowid`,
  ).map((row) => row.text("sql"));
}

/** The columns that are written; what SQLite computes of others is not among them. */
function columnsOf(connection: Connection, table: string): readonly string[] {
  return rows(connection, `SELECT name FROM pragma_table_info('${table}')`).map((row) =>
    row.text("name"),
  );
}

function rows(connection: Connection, text: string): readonly RowReader[] {
  return connection.query(text, {}).map(readRow);
}
