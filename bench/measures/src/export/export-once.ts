/** Exports all Steps of a SQLite file in one format, discards the text, and prints time and memory. */
import { createGateway } from "@tollgate/core";
import { sqliteStore } from "@tollgate/store-sqlite";
import { scriptedProvider } from "@tollgate/testing";
import { organizationId } from "../step-intents.ts";

const maxGrowth = 100_000_000;
const [filename = "", format = "", steps = ""] = process.argv.slice(2);
const gateway = createGateway({
  store: sqliteStore({ filename }),
  providers: { sim: scriptedProvider() },
  maintenance: false,
});
await gateway.ready();
const before = process.memoryUsage().rss;
const peak = { rss: before, heap: 0 };
const started = performance.now();
let [bytes, records] = [0, 0];
const file = gateway.steps.export(
  { organizationId },
  { format: format === "csv" ? "csv" : "jsonl" },
);
for await (const piece of file) {
  bytes += piece.byteLength;
  for (const byte of piece) if (byte === 0x0a) records++;
  const { rss, heapUsed } = process.memoryUsage();
  peak.rss = Math.max(peak.rss, rss);
  peak.heap = Math.max(peak.heap, heapUsed);
}
const seconds = (performance.now() - started) / 1_000;
await gateway.close();
const expected = Number(steps) + (format === "csv" ? 1 : 0);
const megabytes = (count: number): string => `${(count / 1_000_000).toFixed(1)} MB`;
process.stdout.write(
  `${format}: ${records} lines, ${megabytes(bytes)} in ${seconds.toFixed(1)} s; ` +
    `memory ${megabytes(before)} before, at most ${megabytes(peak.rss)} (heap ${megabytes(peak.heap)})\n`,
);
process.exitCode = records === expected && peak.rss - before < maxGrowth ? 0 : 1;
