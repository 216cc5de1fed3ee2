/**
 * `npm run bench:export -- --steps 1000000 --sessions 20000`: fills a SQLite store, exports all its Steps in both
 * formats, their costs in the format of FOCUS, and sums them up, each in a separate process. A small heap makes each process keep only the memory that it
 * needs. Prints time and memory, and fails if one process grows by 100 MB or more.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fillSqlite } from "./growth/fill.ts";
import { readNumbers } from "./read-numbers.ts";

const { steps, sessions } = readNumbers({ steps: 1_000_000, sessions: 20_000 });
/** In megabytes. V8 ends a process that needs more. */
const smallHeap = ["--max-old-space-size=64", "--max-semi-space-size=4"];
const folder = mkdtempSync(join(tmpdir(), "tollgate-export-"));
try {
  const filename = join(folder, "tollgate.db");
  await fillSqlite(filename, { steps, sessions, isPriced: true });
  const results = [
    run("export-once.ts", filename, "csv", String(steps)),
    run("export-once.ts", filename, "jsonl", String(steps)),
    run("focus-once.ts", filename, "csv", String(steps)),
    run("focus-once.ts", filename, "parquet", String(steps)),
    run("summarize-once.ts", filename, String(steps)),
  ];
  process.exitCode = results.every((within) => within) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function run(script: string, ...words: readonly string[]): boolean {
  const path = fileURLToPath(new URL(`./export/${script}`, import.meta.url));
  const all = [...smallHeap, ...process.execArgv, path, ...words];
  return spawnSync(process.execPath, all, { stdio: "inherit" }).status === 0;
}
