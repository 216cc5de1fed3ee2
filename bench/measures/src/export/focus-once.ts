/**
 * Runs `tollgate export focus` on a SQLite file in one format. Prints time, memory, the size of the file, and for how long the
 * event loop was held up. `--keep` leaves the file.
 */
import { rmSync, statSync, writeFileSync } from "node:fs";
import { main } from "tollgate";
import { DelayWatch, describeDelay } from "../delays.ts";

const maxGrowth = 100_000_000;
const [filename = "", format = "", steps = "", keep = ""] = process.argv.slice(2);
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
const delays = new DelayWatch();
const started = performance.now();
const usedBefore = process.cpuUsage();
await main([...command, "--format", format, "--out", out]);
const seconds = (performance.now() - started) / 1_000;
const used = process.cpuUsage(usedBefore);
const cpuSeconds = (used.user + used.system) / 1_000_000;
clearInterval(watch);
const delay = delays.take();
delays.stop();
const { size } = statSync(out);
for (const file of [config, `${out}.empty`, ...(keep === "--keep" ? [] : [out])]) rmSync(file);
const megabytes = (count: number): string => `${(count / 1_000_000).toFixed(1)} MB`;
process.stdout.write(
  `focus ${format}: ${steps} Steps, ${megabytes(size)} in ${seconds.toFixed(1)} s (${cpuSeconds.toFixed(1)} s CPU); ` +
    `memory ${megabytes(before)} before, at most ${megabytes(peak)}; ${describeDelay(delay)}\n`,
);
if (peak - before >= maxGrowth) process.exitCode = 1;
