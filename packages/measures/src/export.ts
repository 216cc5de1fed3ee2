/**
 * `npm run measure:export -- --steps 1000000 --sessions 20000`: fills a SQLite store, exports all its Steps in both
 * formats and sums them up, each in a process of its own whose heap is kept small, so that what it holds is what it
 * needs, and prints what that took. Fails when one takes 100 MB of memory or more beyond what the process has before.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fillSqlite } from "./growth/fill-sqlite.ts";
import { readNumbers } from "./read-numbers.ts";

const { steps, sessions } = readNumbers({ steps: 1_000_000, sessions: 20_000 });
/** Megabytes; with less than it needs, V8 ends the process. */
const smallHeap = ["--max-old-space-size=64", "--max-semi-space-size=4"];
const folder = mkdtempSync(join(tmpdir(), "tollgate-export-"));
try {
  const filename = join(folder, "tollgate.db");
  await fillSqlite(filename, { steps, sessions });
  const results = [
    run("export-once.ts", filename, "csv", String(steps)),
    run("export-once.ts", filename, "jsonl", String(steps)),
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
