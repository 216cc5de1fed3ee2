/**
 * `npm run faults:bills -- --runs 2000 --seed 7`: calls at once that end early in every way, before an upstream that knows
 * its true bill. Hard budgets hold, and nothing is charged less than is known to be owed. Time doesn't move while the stores
 * work, so only those that need no waiting are played on.
 */
import fc from "fast-check";
import { readNumbers } from "./arguments.ts";
import { somePlan } from "./bills/plan.ts";
import { playPlan } from "./bills/play-plan.ts";
import { freshMemory, freshSqlite } from "./stores/fresh-stores.ts";

const { runs, seed } = readNumbers({ runs: 500, seed: Date.now() % 1_000_000_000 });
process.stdout.write(`${runs} runs on each store, seed ${seed}\n`);
let failures = 0;
for (const stores of [freshMemory, freshSqlite]) {
  const started = performance.now();
  const property = fc.asyncProperty(somePlan, async (plan) => {
    const problems = await playPlan(stores, plan);
    if (problems.length > 0) throw new Error(problems.join("\n"));
  });
  const result = await fc.check(property, { numRuns: runs, seed });
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  process.stdout.write(`${stores.name.padEnd(14)} ${result.numRuns} plans in ${seconds} s\n`);
  if (!result.failed) continue;
  failures++;
  process.stdout.write(`${fc.defaultReportMessage(result) ?? ""}\n`);
}
process.exit(failures === 0 ? 0 : 1);
