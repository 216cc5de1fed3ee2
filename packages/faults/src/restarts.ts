/**
 * `npm run faults -- restarts --restarts 200 --seed 7`: PostgreSQL crashes over and over, while two gateway processes
 * send requests without a pause. Checks that every complete answer that a client saw is in the database.
 */
import { setTimeout as pause } from "node:timers/promises";
import { checkBudgets, checkEvidence, checkQuiet, checkUsage } from "@tollgate/testing";
import { startPostgres } from "@tollgate/testing/postgres";
import { readNumbers } from "./arguments.ts";
import { createSecrets } from "./load/keys.ts";
import { lostAnswers, readLedger } from "./load/read-ledger.ts";
import { startWorkers } from "./load/workers.ts";
import { seededRandom } from "./random.ts";
import { openDatabase } from "./stores/database-location.ts";

const organizationId = "acme";
const budgetUsd = 1_000;
const maxMs = 20 * 60_000;

const { restarts, seed } = readNumbers({ restarts: 200, seed: Date.now() % 1_000_000_000 });
const random = seededRandom(seed);
process.stdout.write(`${restarts} restarts, seed ${seed}\n`);
const started = performance.now();
const server = await startPostgres({ fsync: true });
const place = { url: server.url, schema: "tollgate" };
const secrets = await createSecrets(place, { organizationId, count: 4 });
const workers = await startWorkers(place, { processes: 2, usd: budgetUsd });
await workers.begin({ secrets, concurrency: 8, refusals: 1 });
let done = 0;
for (; done < restarts && performance.now() - started < maxMs; done++) {
  await pause(100 + random() * 400);
  await server.restart("immediate");
}
await pause(1_000);
const reports = await workers.reports();
await workers.close();

const store = openDatabase(place);
const ledger = await readLedger(store, { organizationId, budgetId: "each-key" });
await store.close();
await server.stop();
const acknowledged = reports.flatMap((report) => report.acknowledged);
const lost = lostAnswers(ledger, acknowledged);
const failed = reports.reduce((sum, report) => sum + report.failed, 0);
const problems = [checkUsage, checkEvidence, checkBudgets, checkQuiet].flatMap((check) =>
  check(ledger),
);
const seconds = Math.round((performance.now() - started) / 1_000);
process.stdout.write(
  `${done} restarts in ${seconds} s: ${ledger.steps.length} Steps, ${acknowledged.length} acknowledged, ${failed} failed, ${lost.length} lost, ${problems.length} problems\n`,
);
for (const problem of [...lost, ...problems].slice(0, 20)) process.stdout.write(`  ${problem}\n`);
process.exit(
  lost.length + problems.length === 0 && done === restarts && acknowledged.length > 0 ? 0 : 1,
);
