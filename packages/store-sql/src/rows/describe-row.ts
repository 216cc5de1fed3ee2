import type { SqlValue } from "../dialect.ts";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

/** The types of columns, by the methods that read them. */
interface ColumnTypes {
  readonly text: string;
  readonly textOrNull: string | null;
  readonly integer: number;
  readonly integerOrNull: number | null;
  readonly bytes: Uint8Array;
  readonly bytesOrNull: Uint8Array | null;
}

type AnyColumn = keyof ColumnTypes | "json" | "jsonOrNull" | readonly unknown[];

/** How a column stores a value: as its type, as JSON, or as one of the listed words. */
type ColumnOf<Value> =
  | {
      [Type in keyof ColumnTypes]: [Value, ColumnTypes[Type]] extends [ColumnTypes[Type], Value]
        ? Type
        : never;
    }[keyof ColumnTypes]
  | "json"
  | "jsonOrNull"
  | readonly Value[];

/** The rows of a table: their columns, and the conversions between a record and its row. */
export interface RowDescription<Record> {
  readonly columns: readonly string[];
  /** The record as the parameters of its row. */
  toRow(record: Record): SqlParameters;
  /** The record in a row. */
  fromRow(row: unknown): Record;
}

/**
 * Describes rows by the columns of their records' members. A column has the name of its member in snake case, or the one in
 * `names`. This is slower than code for each member, so the rows that requests write are built by such code.
 */
export function describeRow<Record extends object>(
  members: { readonly [Member in keyof Record]-?: ColumnOf<Record[Member]> },
  names: { readonly [Member in keyof Record]?: string } = {},
): RowDescription<Record> {
  const described = (Object.keys(members) as (keyof Record & string)[]).map((member) => {
    const column: string = names[member] ?? snakeCase(member);
    const type: AnyColumn = members[member];
    return { member, column, type };
  });
  return {
    columns: described.map(({ column }) => column),
    // Loops, because lists of entries would take five times as long.
    toRow(record) {
      const row: { [column: string]: SqlValue } = {};
      for (const { member, column, type } of described) row[column] = written(type, record[member]);
      return row;
    },
    fromRow(row) {
      const read = readRow(row);
      const record: { [member: string]: unknown } = {};
      for (const { member, column, type } of described)
        record[member] = typeof type === "string" ? read[type](column) : read.oneOf(column, type);
      return record as Record;
    },
  };
}

/** Converts a name from camel case to snake case. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function written(type: AnyColumn, value: unknown): SqlValue {
  const isJson = type === "json" || type === "jsonOrNull";
  return isJson && value !== null ? JSON.stringify(value) : (value as SqlValue);
}
