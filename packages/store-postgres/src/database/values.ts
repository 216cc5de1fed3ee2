import type { SqlValue } from "@tollgate/store-sql";

/** PostgreSQL's text cannot hold U+0000, so it and the character that stands in for it are written as two. */
const escaped: Readonly<Record<string, string>> = { "\u0000": "\u001a0", "\u001a": "\u001a1" };
const plain: Readonly<Record<string, string>> = { "\u001a0": "\u0000", "\u001a1": "\u001a" };
const special = new RegExp(Object.keys(escaped).join("|"), "g");
const stoodIn = new RegExp(Object.keys(plain).join("|"), "g");

/** Type ids of PostgreSQL. */
const bytea = 17;
const texts: ReadonlySet<number> = new Set([25, 1043]);

/** A parameter as it is sent. */
export function toParameter(value: SqlValue): unknown {
  if (typeof value === "string") return value.replace(special, (one) => escaped[one] ?? one);
  // A view is sent as the bytes it shows.
  return value instanceof Uint8Array
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : value;
}

/** How columns are read, whatever parsers the application has set for its own: numbers stay text. */
export const columnTypes = {
  getTypeParser(type: number): (value: string) => unknown {
    if (type === bytea) return bytesOf;
    return texts.has(type) ? textOf : (value) => value;
  },
};

function textOf(value: string): string {
  return value.replace(stoodIn, (one) => plain[one] ?? one);
}

function bytesOf(value: string): Buffer {
  if (!value.startsWith("\\x")) throw new TypeError("the server's bytea_output must be hex");
  return Buffer.from(value.slice(2), "hex");
}
