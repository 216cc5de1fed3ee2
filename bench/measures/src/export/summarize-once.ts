/** Summarizes all Steps of a SQLite file by model, and by day and key, and prints time and memory. */
import { createGateway } from "@tollgate/core";
import { sqliteStore } from "@tollgate/store-sqlite";
import { scriptedProvider } from "@tollgate/testing";
import { organizationId } from "../step-intents.ts";

const maxGrowth = 100_000_000;
const [filename = "", steps = ""] = process.argv.slice(2);
const gateway = createGateway({
  store: sqliteStore({ filename }),
  providers: { sim: scriptedProvider() },
  maintenance: false,
});
await gateway.ready();
const before = process.memoryUsage().rss;
let isRight = true;
for (const by of [["model"], ["day", "key"]] as const) {
  const started = performance.now();
  const rows = await gateway.steps.summarize({ organizationId }, by);
  const seconds = (performance.now() - started) / 1_000;
  const summed = rows.reduce((sum, row) => sum + row.steps, 0);
  const { rss } = process.memoryUsage();
  isRight &&= summed === Number(steps) && rss - before < maxGrowth;
  process.stdout.write(
    `by ${by.join(" and ")}: ${summed} Steps in ${rows.length} rows in ${seconds.toFixed(1)} s; ` +
      `memory ${(before / 1_000_000).toFixed(1)} MB before, ${(rss / 1_000_000).toFixed(1)} MB after\n`,
  );
}
await gateway.close();
process.exitCode = isRight ? 0 : 1;
