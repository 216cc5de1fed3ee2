/**
 * `npm run measure:export -- --steps 1000000 --sessions 20000`: fills a SQLite store, exports all its Steps in both
 * formats, each in a process of its own whose heap is kept small, so that what it holds is what it needs, and prints what
 * that took. Fails when an export takes 100 MB of memory or more beyond what the process has before it.
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
const exporting = fileURLToPath(new URL("./export/export-once.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tollgate-export-"));
try {
  const filename = join(folder, "tollgate.db");
  await fillSqlite(filename, { steps, sessions });
  const results = ["csv", "jsonl"].map((format) => exportOnce(filename, format));
  process.exitCode = results.every((within) => within) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function exportOnce(filename: string, format: string): boolean {
  const words = [...smallHeap, ...process.execArgv, exporting, filename, format, String(steps)];
  return spawnSync(process.execPath, words, { stdio: "inherit" }).status === 0;
}
