/** Reads a row from a database client. Throws a TypeError that names the column with an invalid value. */
export function readRow(row: unknown): RowReader {
  return new RowReader(row);
}

/**
 * Reads the columns of one row and rejects values that the schema does not allow, so damaged data causes an error, not
 * a wrong answer.
 *
 * A class, because closures would cost ten functions for each row.
 */
export class RowReader {
  readonly #row: unknown;

  constructor(row: unknown) {
    this.#row = row;
  }

  text(column: string): string {
    const found = this.#value(column);
    return typeof found === "string" ? found : mismatch(column, "text");
  }

  textOrNull(column: string): string | null {
    return this.#value(column) === null ? null : this.text(column);
  }

  /** One of these values: words, or null. */
  oneOf<Value>(column: string, values: readonly Value[]): Value {
    const found = this.#value(column);
    for (const value of values) if (value === found) return value;
    return mismatch(column, `one of ${values.map(String).join(", ")}`);
  }

  integer(column: string): number {
    const found = this.#value(column);
    // PostgreSQL's clients return 64-bit integers as text.
    const number = typeof found === "string" ? Number(found) : found;
    return Number.isSafeInteger(number) ? Number(number) : mismatch(column, "a safe integer");
  }

  integerOrNull(column: string): number | null {
    return this.#value(column) === null ? null : this.integer(column);
  }

  bytes(column: string): Uint8Array {
    const found = this.#value(column);
    if (!(found instanceof Uint8Array)) return mismatch(column, "bytes");
    return new Uint8Array(found.buffer, found.byteOffset, found.byteLength);
  }

  bytesOrNull(column: string): Uint8Array | null {
    return this.#value(column) === null ? null : this.bytes(column);
  }

  /** A JSON value that this store wrote. Its type is the one that was written. */
  json<Value>(column: string): Value {
    return JSON.parse(this.text(column));
  }

  jsonOrNull<Value>(column: string): Value | null {
    return this.#value(column) === null ? null : this.json(column);
  }

  #value(column: string): unknown {
    if (typeof this.#row !== "object" || this.#row === null)
      throw new TypeError("a row is not an object");
    return Reflect.get(this.#row, column);
  }
}

function mismatch(column: string, expected: string): never {
  throw new TypeError(`column ${column} does not hold ${expected}`);
}
