/**
 * `npm run faults -- soak --minutes 20 --store postgres --seed 7`: mixed traffic of several tenants on two processes, with
 * faults of the upstream and the store, and kills. Checks every record at the end, plots memory and descriptors to
 * `--svg PATH`, and bounds their growth. `--seconds 30` is for short runs.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "@tollgate/testing/postgres";
import { readNumbers, readTexts } from "./arguments.ts";
import { plot } from "./soak/plot.ts";
import { runSoak, type SoakResult } from "./soak/run-soak.ts";
import type { DatabaseLocation } from "./stores/database-location.ts";

const defaults = {
  minutes: 20,
  seconds: 0,
  seed: Date.now() % 1_000_000_000,
  concurrency: 12,
  failing: 2,
  kill: 10,
};
const texts = ["store", "svg"];
const { minutes, seconds, seed, concurrency, failing, kill } = readNumbers(defaults, texts);
const { store = "sqlite", svg } = readTexts([...Object.keys(defaults), ...texts]);
if (store !== "sqlite" && store !== "postgres") {
  process.stderr.write(`--store must be sqlite or postgres, not ${store}.\n`);
  process.exit(2);
}
const plan = {
  seconds: seconds === 0 ? minutes * 60 : seconds,
  seed,
  concurrency,
  failing,
  killEvery: kill,
};
process.stdout.write(
  `${plan.seconds} s on ${store}, seed ${seed}, ${failing} of 1,000 changes fail\n`,
);
const folder = mkdtempSync(join(tmpdir(), "tollgate-soak-"));
const result = await soakOn(store);
rmSync(folder, { recursive: true, force: true });
const image = svg ?? join(tmpdir(), `tollgate-soak-${store}.svg`);
writeFileSync(image, plot(`Soak on ${store}, seed ${seed}`, result.samples));
report(result);
process.stdout.write(`memory and descriptors: ${image}\n`);
process.exit(result.problems.length === 0 && result.acknowledged > 0 ? 0 : 1);

async function soakOn(kind: "sqlite" | "postgres"): Promise<SoakResult> {
  if (kind === "sqlite")
    return runSoak({ ...plan, place: { filename: join(folder, "tollgate.db") } });
  const server = await startPostgres();
  const place: DatabaseLocation = { url: server.url, schema: "tollgate" };
  return runSoak({ ...plan, place }).finally(() => server.stop());
}

function report({ counts, steps, acknowledged, kills, samples, problems }: SoakResult): void {
  for (const [name, times] of Object.entries(counts).sort(([one], [other]) =>
    one.localeCompare(other),
  ))
    process.stdout.write(`  ${name.padEnd(26)} ${times}\n`);
  const [first, last] = [samples[0]?.[1], samples[0]?.at(-1)];
  if (first && last)
    process.stdout.write(
      `  resident memory ${megabytes(first.rssBytes)} -> ${megabytes(last.rssBytes)} MB, descriptors ${first.descriptors} -> ${last.descriptors}\n`,
    );
  for (const problem of problems.slice(0, 50)) process.stdout.write(`  ${problem}\n`);
  process.stdout.write(
    `${steps} Steps, ${acknowledged} whole answers, ${kills} kills: ${problems.length} problems\n`,
  );
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1);
}
