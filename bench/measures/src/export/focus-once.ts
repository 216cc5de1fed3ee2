/** Runs `tollgate export focus` on a SQLite file in one format, and prints time, memory and the size of the file. */
import { rmSync, statSync, writeFileSync } from "node:fs";
import { main } from "tollgate";

const maxGrowth = 100_000_000;
const [filename = "", format = "", steps = ""] = process.argv.slice(2);
const config = `${filename}.json`;
const out = `${filename}.${format}`;
const store = { type: "sqlite", filename };
writeFileSync(config, JSON.stringify({ store, providers: { sim: { type: "sim" } } }));
const command = ["node", "tollgate", "--config", config, "export", "focus"];
// Loads everything first, so that only the export counts.
await main([...command, "--to", "1970-01-01", "--format", format, "--out", `${out}.empty`]);
const before = process.memoryUsage().rss;
let peak = before;
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 20);
const started = performance.now();
await main([...command, "--format", format, "--out", out]);
const seconds = (performance.now() - started) / 1_000;
clearInterval(watch);
const { size } = statSync(out);
for (const file of [config, out, `${out}.empty`]) rmSync(file);
const megabytes = (count: number): string => `${(count / 1_000_000).toFixed(1)} MB`;
process.stdout.write(
  `focus ${format}: ${steps} Steps, ${megabytes(size)} in ${seconds.toFixed(1)} s; ` +
    `memory ${megabytes(before)} before, at most ${megabytes(peak)}\n`,
);
if (peak - before >= maxGrowth) process.exitCode = 1;
