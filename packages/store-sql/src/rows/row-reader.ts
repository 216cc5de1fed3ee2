/** Reads one row's columns and refuses what the schema does not allow, so that damage is an error and not a wrong answer. */
export interface RowReader {
  text(column: string): string;
  textOrNull(column: string): string | null;
  integer(column: string): number;
  integerOrNull(column: string): number | null;
  bytes(column: string): Uint8Array;
  bytesOrNull(column: string): Uint8Array | null;
  /** What this store wrote as JSON; its shape is the writer's. */
  json<Value>(column: string): Value;
  jsonOrNull<Value>(column: string): Value | null;
}

/** Reads a row that a client gave. Throws a TypeError naming the column that does not hold what it should. */
export function readRow(row: unknown): RowReader {
  const value = (column: string): unknown => {
    if (typeof row !== "object" || row === null) throw new TypeError("a row is not an object");
    return Reflect.get(row, column);
  };
  const orNull = <Value>(column: string, read: (column: string) => Value): Value | null =>
    value(column) === null ? null : read(column);

  const text = (column: string): string => {
    const found = value(column);
    return typeof found === "string" ? found : mismatch(column, "text");
  };
  const integer = (column: string): number => {
    const found = value(column);
    // PostgreSQL's clients give 64-bit integers as text.
    const number = typeof found === "string" ? Number(found) : found;
    return Number.isSafeInteger(number) ? Number(number) : mismatch(column, "a safe integer");
  };
  const bytes = (column: string): Uint8Array => {
    const found = value(column);
    if (!(found instanceof Uint8Array)) return mismatch(column, "bytes");
    return new Uint8Array(found.buffer, found.byteOffset, found.byteLength);
  };
  return {
    text,
    integer,
    bytes,
    textOrNull: (column) => orNull(column, text),
    integerOrNull: (column) => orNull(column, integer),
    bytesOrNull: (column) => orNull(column, bytes),
    json: (column) => JSON.parse(text(column)),
    jsonOrNull: (column) => orNull(column, (name) => JSON.parse(text(name))),
  };
}

function mismatch(column: string, expected: string): never {
  throw new TypeError(`column ${column} does not hold ${expected}`);
}
