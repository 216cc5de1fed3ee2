import type { SqlValue } from "@tollgate/store-sql";

/** PostgreSQL's text can't contain U+0000, so that character and its substitute are each written as two characters. */
const [nul, standIn, escapedNul, escapedStandIn] = ["\u0000", "\u001a", "\u001a0", "\u001a1"];

/** Type ids of PostgreSQL. */
const bytea = 17;
const texts: ReadonlySet<number> = new Set([25, 1043]);

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the two that are escaped.
const isEscaped = /[\u0000\u001a]/;

/** Encodes a text for the server. */
export function escapeText(text: string): string {
  return isEscaped.test(text)
    ? text.replaceAll(standIn, escapedStandIn).replaceAll(nul, escapedNul)
    : text;
}

/** Encodes a parameter for the server. */
export function toParameter(value: SqlValue): unknown {
  if (typeof value === "string") return escapeText(value);
  // Only the bytes of the view are sent.
  return value instanceof Uint8Array
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : value;
}

/** The parsers of columns, whatever parsers the application has set for itself: numbers stay text. */
export const columnTypes = {
  getTypeParser(type: number): (value: string) => unknown {
    if (type === bytea) return bytesOf;
    return texts.has(type) ? textOf : (value) => value;
  },
};

function textOf(value: string): string {
  return value.replaceAll(escapedNul, nul).replaceAll(escapedStandIn, standIn);
}

function bytesOf(value: string): Buffer {
  if (!value.startsWith("\\x")) throw new TypeError("the server's bytea_output must be hex");
  return Buffer.from(value.slice(2), "hex");
}
