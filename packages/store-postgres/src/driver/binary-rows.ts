import type { SqlParameters, SqlValue } from "@tollgate/store-sql";
import { escapeText } from "../database/values.ts";
import type { ColumnType } from "./table-columns.ts";

/** Type ids of PostgreSQL. */
const typeIds: Readonly<Record<ColumnType, number>> = { TEXT: 25, BIGINT: 20, BYTEA: 17 };

const arrayHeaderBytes = 20;
const integerBytes = 8;
/** A column's bytes follow the id of its type and its length. */
const columnHeaderBytes = 8;
const upper = 0x1_0000_0000;

/** A composite type of the database: its columns after `place`, in their order. */
export interface RowType {
  readonly typeId: number;
  readonly columns: readonly (readonly [name: string, type: ColumnType])[];
}

/** A row, and the place of its change in the statement. */
export interface PlacedRow {
  readonly place: number;
  readonly row: SqlParameters;
}

/** Encodes rows as an array parameter in PostgreSQL's binary format, which needs no escapes for bytes. */
export function binaryRows({ typeId, columns }: RowType, rows: readonly PlacedRow[]): Buffer {
  let bound = arrayHeaderBytes;
  for (const { row } of rows) {
    bound += 8 + (columns.length + 1) * columnHeaderBytes + integerBytes;
    for (const [column] of columns) bound += boundOf(columnOf(row, column));
  }
  const array = Buffer.allocUnsafe(bound);
  let at = writeArrayHeader(array, typeId, rows.length);
  for (const { place, row } of rows) {
    const start = at;
    at = array.writeInt32BE(columns.length + 1, at + 4);
    at = writeColumn(array, at, "BIGINT", place);
    for (const [column, type] of columns) at = writeColumn(array, at, type, columnOf(row, column));
    array.writeInt32BE(at - start - 4, start);
  }
  return array.subarray(0, at);
}

/** Encodes numbers as an array parameter in PostgreSQL's binary format. */
export function binaryIntegers(values: readonly number[]): Buffer {
  const array = Buffer.allocUnsafe(arrayHeaderBytes + values.length * (4 + integerBytes));
  let at = writeArrayHeader(array, typeIds.BIGINT, values.length);
  for (const value of values) at = writeInteger(array, array.writeInt32BE(integerBytes, at), value);
  return array;
}

function columnOf(row: SqlParameters, column: string): SqlValue {
  const value = row[column];
  if (value === undefined) throw new TypeError(`a row has no ${column}`);
  return value;
}

/** An upper bound of a value's bytes. */
function boundOf(value: SqlValue): number {
  if (value === null) return 0;
  if (typeof value === "number") return integerBytes;
  // A character takes up to three bytes, or becomes two characters of one byte each.
  return typeof value === "string" ? value.length * 3 : value.length;
}

/** Writes one dimension that starts at 1 and has no nulls. */
function writeArrayHeader(array: Buffer, typeId: number, length: number): number {
  array.writeInt32BE(1, 0);
  array.writeInt32BE(0, 4);
  array.writeUInt32BE(typeId, 8);
  array.writeInt32BE(length, 12);
  return array.writeInt32BE(1, 16);
}

function writeColumn(array: Buffer, at: number, type: ColumnType, value: SqlValue): number {
  const start = array.writeInt32BE(typeIds[type], at) + 4;
  if (value === null) return array.writeInt32BE(-1, start - 4);
  let end: number;
  if (typeof value === "number") end = writeInteger(array, start, value);
  else if (typeof value === "string") end = start + array.write(escapeText(value), start);
  else {
    array.set(value, start);
    end = start + value.length;
  }
  array.writeInt32BE(end - start, start - 4);
  return end;
}

function writeInteger(array: Buffer, at: number, value: number): number {
  const high = Math.floor(value / upper);
  array.writeInt32BE(high, at);
  return array.writeUInt32BE(value - high * upper, at + 4);
}
