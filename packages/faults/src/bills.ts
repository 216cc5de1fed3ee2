/**
 * `npm run faults -- bills --runs 2000 --postgres 200 --seed 7`: concurrent calls that end early in every way, with an
 * upstream that knows its true bill. Checks that hard budgets hold and that no charge is below the known bill.
 * PostgreSQL takes about thirty times as long, so it has its own number of runs; `--postgres 0` skips it.
 */
import { startPostgres } from "@tollgate/testing/postgres";
import fc from "fast-check";
import { readNumbers } from "./arguments.ts";
import { anyPlan } from "./bills/plan.ts";
import { playPlan } from "./bills/play-plan.ts";
import {
  type EmptyStores,
  emptyMemoryStores,
  emptyPostgresStores,
  emptySqliteStores,
} from "./stores/empty-stores.ts";

const { runs, postgres, seed } = readNumbers({
  runs: 500,
  postgres: 50,
  seed: Date.now() % 1_000_000_000,
});
process.stdout.write(`${runs} runs on each store, ${postgres} on PostgreSQL, seed ${seed}\n`);
let failures = 0;
for (const stores of [emptyMemoryStores, emptySqliteStores]) await check(stores, runs);
if (postgres > 0) {
  const server = await startPostgres();
  const stores = emptyPostgresStores(server.url);
  await check(stores, postgres);
  await stores.close();
  await server.stop();
}
process.exit(failures === 0 ? 0 : 1);

async function check(stores: EmptyStores, numRuns: number): Promise<void> {
  const started = performance.now();
  const property = fc.asyncProperty(anyPlan, async (plan) => {
    const problems = await playPlan(stores, plan);
    if (problems.length > 0) throw new Error(problems.join("\n"));
  });
  const result = await fc.check(property, { numRuns, seed });
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  process.stdout.write(`${stores.name.padEnd(14)} ${result.numRuns} plans in ${seconds} s\n`);
  if (!result.failed) return;
  failures++;
  process.stdout.write(`${fc.defaultReportMessage(result) ?? ""}\n`);
}
