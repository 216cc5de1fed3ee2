import type { ColumnType, SqlParameters, SqlValue } from "@tollgate/store-sql";
import { escapeText } from "../database/values.ts";

/** Type ids of PostgreSQL. */
const typeIds: Readonly<Record<ColumnType, number>> = { text: 25, integer: 20, bytes: 17 };

const arrayHeaderBytes = 20;
const integerBytes = 8;
/** A column's bytes follow the id of its type and its length. */
const columnHeaderBytes = 8;
const upper = 0x1_0000_0000;
/** Longer texts are written by one call. */
const maxLoop = 48;

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
  const rowBytes = 8 + (columns.length + 1) * (columnHeaderBytes + integerBytes);
  let array: Buffer = Buffer.allocUnsafe(arrayHeaderBytes + rows.length * rowBytes * 2);
  let at = writeArrayHeader(array, typeId, rows.length);
  for (const { place, row } of rows) {
    array = withRoom(array, at, rowBytes);
    const start = at;
    at = array.writeInt32BE(columns.length + 1, at + 4);
    at = writeColumn(array, at, "integer", place);
    for (const [column, type] of columns) {
      const value = row[column];
      if (value === undefined) throw new TypeError(`a row has no ${column}`);
      // The other columns of the row may be as long as integers.
      if (value !== null && typeof value !== "number")
        array = withRoom(array, at, boundOf(value) + rowBytes);
      at = writeColumn(array, at, type, value);
    }
    array.writeInt32BE(at - start - 4, start);
  }
  return array.subarray(0, at);
}

/** The array, or a copy with room for more bytes after the written ones. */
function withRoom(array: Buffer, at: number, bytes: number): Buffer {
  if (at + bytes <= array.length) return array;
  const larger = Buffer.allocUnsafe((at + bytes) * 2);
  array.copy(larger, 0, 0, at);
  return larger;
}

/** An upper bound of a value's bytes: a character takes up to three, or becomes two characters of one byte each. */
function boundOf(value: string | Uint8Array): number {
  return typeof value === "string" ? value.length * 3 : value.length;
}

/** Encodes numbers as an array parameter in PostgreSQL's binary format. */
export function binaryIntegers(values: readonly number[]): Buffer {
  const array = Buffer.allocUnsafe(arrayHeaderBytes + values.length * (4 + integerBytes));
  let at = writeArrayHeader(array, typeIds.integer, values.length);
  for (const value of values) at = writeInteger(array, array.writeInt32BE(integerBytes, at), value);
  return array;
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
  else if (typeof value === "string") end = writeText(array, start, value);
  else {
    array.set(value, start);
    end = start + value.length;
  }
  array.writeInt32BE(end - start, start - 4);
  return end;
}

/** Most texts are short and plain, and a loop writes those faster than a call of the runtime. */
function writeText(array: Buffer, start: number, value: string): number {
  if (value.length <= maxLoop) {
    let at = 0;
    for (; at < value.length; at++) {
      const code = value.charCodeAt(at);
      // Space to tilde are one byte each, and none is escaped.
      if (code < 0x20 || code > 0x7e) break;
      array[start + at] = code;
    }
    if (at === value.length) return start + at;
  }
  return start + array.write(escapeText(value), start);
}

function writeInteger(array: Buffer, at: number, value: number): number {
  const high = Math.floor(value / upper);
  array.writeInt32BE(high, at);
  return array.writeUInt32BE(value - high * upper, at + 4);
}
