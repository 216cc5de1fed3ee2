import type { SqlValue } from "@tollgate/store-sql";
import { toParameter } from "../database/values.ts";
import type { ColumnType } from "./table-columns.ts";

/** Type ids of PostgreSQL. */
const elementTypes: Readonly<Record<ColumnType, number>> = { TEXT: 25, BIGINT: 20, BYTEA: 17 };

const headerBytes = 20;
const integerBytes = 8;
const upper = 0x1_0000_0000;

/** An array parameter in PostgreSQL's binary format: nothing in it has to be escaped, and bytes stay bytes. */
export function binaryArray(type: ColumnType, values: readonly SqlValue[]): Buffer {
  const elements = values.map(elementOf);
  const size = elements.reduce<number>((sum, one) => sum + 4 + sizeOf(one), headerBytes);
  const array = Buffer.allocUnsafe(size);
  array.writeInt32BE(1, 0);
  array.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  array.writeInt32BE(elementTypes[type], 8);
  array.writeInt32BE(values.length, 12);
  array.writeInt32BE(1, 16);
  let at = headerBytes;
  for (const element of elements) at = writeElement(array, at, element);
  return array;
}

type Element = string | number | Uint8Array | null;

function elementOf(value: SqlValue): Element {
  return typeof value === "string" ? String(toParameter(value)) : value;
}

function sizeOf(element: Element): number {
  if (element === null) return 0;
  if (typeof element === "number") return integerBytes;
  return typeof element === "string" ? Buffer.byteLength(element) : element.length;
}

function writeElement(array: Buffer, at: number, element: Element): number {
  if (element === null) return array.writeInt32BE(-1, at);
  const size = sizeOf(element);
  const start = array.writeInt32BE(size, at);
  if (typeof element === "number") {
    array.writeInt32BE(Math.floor(element / upper), start);
    array.writeUInt32BE(element - Math.floor(element / upper) * upper, start + 4);
  } else if (typeof element === "string") array.write(element, start);
  else array.set(element, start);
  return start + size;
}
