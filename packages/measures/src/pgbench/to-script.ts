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

/** An array that was sent in PostgreSQL's binary format. */
function arrayLiteral(array: Buffer, id: string): string {
  const type = array.readInt32BE(8);
  const elements: string[] = [];
  for (let at = header; at < array.length; ) {
    const length = array.readInt32BE(at);
    at += 4;
    const end = at + Math.max(length, 0);
    elements.push(length < 0 ? "NULL" : elementLiteral(array.subarray(at, end), type, id));
    at = end;
  }
  return `ARRAY[${elements.join(", ")}]`;
}

function elementLiteral(element: Buffer, type: number, id: string): string {
  if (type === integers) return String(element.readBigInt64BE());
  return type === bytes
    ? `CAST('\\x${element.toString("hex")}' AS BYTEA)`
    : literal(element.toString(), id);
}

/** Without a colon, which `pgbench` takes for the beginning of a variable even within quotes. */
function quoted(text: string): string {
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("'", "''").replaceAll(":", "\\x3a");
  return `E'${escaped}'`;
}
