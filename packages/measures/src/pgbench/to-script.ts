import type { Recorded } from "./record-statements.ts";

/**
 * The recorded statements as a script of `pgbench`, which repeats them with an id of its own wherever they had `id`.
 * Bytes stay as they were: their content does not matter to the database.
 */
export function toScript(statements: readonly Recorded[], id: string): string {
  const lines = statements.map((statement) => `${inlined(statement, id)};`);
  return ["\\set number random(1, 9000000000000000)", ...lines, ""].join("\n");
}

function inlined({ text, values }: Recorded, id: string): string {
  const oneLine = text.replaceAll(/\s+/g, " ");
  return oneLine.replaceAll(/\$(\d+)/g, (_, place) => literal(values[Number(place) - 1], id));
}

function literal(value: unknown, id: string): string {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number") return String(value);
  if (value instanceof Uint8Array) return arrayLiteral(Buffer.from(value), id);
  if (typeof value !== "string") throw new TypeError(`a parameter is a ${typeof value}`);
  return value.split(id).map(quoted).join(" || CAST(:number AS TEXT) || ");
}

const header = 20;
const integers = 20;
const bytes = 17;
const text = 25;

/** An array that was sent in PostgreSQL's binary format. */
function arrayLiteral(array: Buffer, id: string): string {
  const type = array.readInt32BE(8);
  const elements: string[] = [];
  for (let at = header; at < array.length; ) {
    const end = at + 4 + Math.max(array.readInt32BE(at), 0);
    elements.push(valueLiteral(array.subarray(at, end), type, id));
    at = end;
  }
  return `ARRAY[${elements.join(", ")}]`;
}

/** A value behind its length, which is negative for null. */
function valueLiteral(sized: Buffer, type: number, id: string): string {
  if (sized.readInt32BE(0) < 0) return "NULL";
  const value = sized.subarray(4);
  if (type === integers) return String(value.readBigInt64BE());
  if (type === bytes) return `CAST('\\x${value.toString("hex")}' AS BYTEA)`;
  return type === text ? literal(value.toString(), id) : rowLiteral(value, id);
}

/** A row: how many columns it has, and each behind its type. */
function rowLiteral(row: Buffer, id: string): string {
  const columns: string[] = [];
  for (let at = 4; at < row.length; ) {
    const end = at + 8 + Math.max(row.readInt32BE(at + 4), 0);
    columns.push(valueLiteral(row.subarray(at + 4, end), row.readInt32BE(at), id));
    at = end;
  }
  return `ROW(${columns.join(", ")})`;
}

/** Without a colon, which `pgbench` takes for the beginning of a variable even within quotes. */
function quoted(text: string): string {
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("'", "''").replaceAll(":", "\\x3a");
  return `E'${escaped}'`;
}
