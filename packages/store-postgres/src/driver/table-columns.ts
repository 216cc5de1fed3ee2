import { postgresSchema } from "../database/schema.ts";

/** A type of a column. */
export type ColumnType = "TEXT" | "BIGINT" | "BYTEA";

/** A table's columns, in order, with their types. */
export type Columns = Readonly<Record<string, ColumnType>>;

/** The columns of every table, parsed from the statements that create them. */
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

/** A definition begins with the column's name and its type. */
function columnsOf(definitions: string): Columns {
  const columns: Record<string, ColumnType> = {};
  for (const definition of definitions.split(",")) {
    const [column = "", type] = definition.trim().split(" ");
    if (type === "TEXT" || type === "BIGINT" || type === "BYTEA") columns[column] = type;
  }
  return columns;
}
