import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** How `pgbench` runs a script. */
export interface Run {
  readonly url: string;
  readonly script: string;
  readonly clients: number;
  readonly seconds: number;
}

/** How often per second the script ran, each statement prepared once per connection. */
export async function runPgbench({ url, script, clients, seconds }: Run): Promise<number> {
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

/** Reads the rate out of what `pgbench` printed; throws when a run of the script failed. */
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
    throw new Error("pgbench cannot be started; on Debian: apt-get install postgresql", {
      cause: error,
    });
  });
  if (exit[0] !== 0) throw new Error(`pgbench failed:\n${printed.join("")}`);
  return printed.join("");
}
