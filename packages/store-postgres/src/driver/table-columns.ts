import { postgresSchema } from "../database/schema.ts";

/** A type of a column. */
export type ColumnType = "TEXT" | "BIGINT" | "BYTEA";

/** A table's columns in their order, with their types. */
export type Columns = Readonly<Record<string, ColumnType>>;

/** The columns of every table, read from the statements that make them: code that writes rows by them names no table. */
export function tableColumns(): ReadonlyMap<string, Columns> {
  const tables = new Map<string, Columns>();
  for (const statement of [...postgresSchema().values()].flat()) {
    const [before = "", ...definitions] = statement.split(" (");
    const [first, second, table, ...others] = before.split(" ");
    if (first === "CREATE" && second === "TABLE" && table !== undefined && others.length === 0)
      tables.set(table, columnsOf(definitions.join(" (")));
  }
  return tables;
}

/** A column's definition is its name, its type, and what else is said of it. */
function columnsOf(definitions: string): Columns {
  const columns: Record<string, ColumnType> = {};
  for (const definition of definitions.split(",")) {
    const [column = "", type] = definition.trim().split(" ");
    if (type === "TEXT" || type === "BIGINT" || type === "BYTEA") columns[column] = type;
  }
  return columns;
}
