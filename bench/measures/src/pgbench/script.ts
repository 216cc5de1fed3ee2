import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RecordedStatement } from "./store.ts";

/** The options of a run of `pgbench`. */
export interface PgbenchOptions {
  readonly url: string;
  readonly script: string;
  readonly clients: number;
  readonly seconds: number;
}

/** Runs a script with statements prepared once per connection. Returns runs per second. */
export async function runPgbench({
  url,
  script,
  clients,
  seconds,
}: PgbenchOptions): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-pgbench-"));
  try {
    const file = join(folder, "script.sql");
    writeFileSync(file, script);
    const counts = ["-c", clients, "-j", Math.min(2, clients), "-T", seconds].map(String);
    return rateIn(await outputOf(["-n", "-M", "prepared", ...counts, "-f", file, url]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Reads the rate in the output of `pgbench`. @throws Error if a run of the script failed */
export function rateIn(output: string): number {
  const rate = /^tps = ([\d.]+) \(without initial connection time\)$/m.exec(output)?.[1];
  const failed = /^number of failed transactions: (\d+)/m.exec(output)?.[1] ?? "0";
  if (rate === undefined || failed !== "0") throw new Error(`pgbench failed:\n${output}`);
  return Number(rate);
}

async function outputOf(parameters: readonly string[]): Promise<string> {
  const child = spawn("pgbench", parameters, { stdio: ["ignore", "pipe", "pipe"] });
  const printed: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => printed.push(text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => printed.push(text));
  const exit = await once(child, "close").catch((error: unknown) => {
    throw new Error("Can't start pgbench. On Debian, run: apt-get install postgresql.", {
      cause: error,
    });
  });
  if (exit[0] !== 0) throw new Error(`pgbench failed:\n${printed.join("")}`);
  return printed.join("");
}

/**
 * Writes the recorded statements as a script of `pgbench`, with a new id in each run in place of `id`. Bytes stay the
 * same: the database ignores their content.
 */
export function toScript(statements: readonly RecordedStatement[], id: string): string {
  const lines = statements.map((statement) => `${inlined(statement, id)};`);
  return ["\\set number random(1, 9000000000000000)", ...lines, ""].join("\n");
}

function inlined({ text, values }: RecordedStatement, id: string): string {
  const oneLine = text.replaceAll(/\s+/g, " ");
  return oneLine.replaceAll(/\$(\d+)/g, (_, place) => literal(values[Number(place) - 1], id));
}

function literal(value: unknown, id: string): string {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number") return String(value);
  if (value instanceof Uint8Array) return arrayLiteral(Buffer.from(value), id);
  if (typeof value !== "string")
    throw new TypeError(`Unsupported parameter of type ${typeof value}.`);
  return value.split(id).map(quoted).join(" || CAST(:number AS TEXT) || ");
}

const header = 20;
const integers = 20;
const bytes = 17;
const text = 25;

/** An array in PostgreSQL's binary format. */
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

/** A value after its length, which is negative for null. */
function valueLiteral(sized: Buffer, type: number, id: string): string {
  if (sized.readInt32BE(0) < 0) return "NULL";
  const value = sized.subarray(4);
  if (type === integers) return String(value.readBigInt64BE());
  if (type === bytes) return `CAST('\\x${value.toString("hex")}' AS BYTEA)`;
  return type === text ? literal(value.toString(), id) : rowLiteral(value, id);
}

/** A row: its number of columns, and each column after its type. */
function rowLiteral(row: Buffer, id: string): string {
  const columns: string[] = [];
  for (let at = 4; at < row.length; ) {
    const end = at + 8 + Math.max(row.readInt32BE(at + 4), 0);
    columns.push(valueLiteral(row.subarray(at + 4, end), row.readInt32BE(at), id));
    at = end;
  }
  return `ROW(${columns.join(", ")})`;
}

/** Escapes colons, too: `pgbench` reads one as the start of a variable, even inside quotes. */
function quoted(text: string): string {
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("'", "''").replaceAll(":", "\\x3a");
  return `E'${escaped}'`;
}
