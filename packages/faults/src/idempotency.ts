/**
 * `npm run faults -- idempotency --requests 10000 --seed 7`: sends each request three times under one idempotency key while
 * processes are killed, on SQLite and on PostgreSQL. Checks that no key leads to a second call, and that all complete answers
 * of a key are equal.
 */
import { startPostgres } from "@tollgate/testing/postgres";
import { readNumbers } from "./arguments.ts";
import { seededRandom } from "./random.ts";
import { type RepeatPlan, repeatRequests } from "./repeats/repeat-requests.ts";
import type { DatabaseLocation } from "./stores/database-location.ts";

const { requests, seed } = readNumbers({ requests: 300, seed: Date.now() % 1_000_000_000 });
process.stdout.write(`${requests} requests, three times each, seed ${seed}\n`);
const plan: RepeatPlan = {
  requests,
  random: seededRandom(seed),
  concurrency: 16,
  killEveryMs: [200, 1_500],
};
const server = await startPostgres();
const isSqliteGood = await run("sqliteStore");
const isPostgresGood = await run("postgresStore", { url: server.url, schema: "tollgate" });
await server.stop();
process.exit(isSqliteGood && isPostgresGood ? 0 : 1);

async function run(name: string, place?: DatabaseLocation): Promise<boolean> {
  const started = performance.now();
  const { problems, ...counts } = await repeatRequests(plan, place);
  const seconds = Math.round((performance.now() - started) / 1_000);
  const figures = Object.entries(counts).map(([what, count]) => `${count} ${what}`);
  process.stdout.write(
    `${name}: ${figures.join(", ")} in ${seconds} s: ${problems.length} problems\n`,
  );
  for (const problem of problems.slice(0, 20)) process.stdout.write(`  ${problem}\n`);
  return problems.length === 0 && counts.kills > 0;
}
