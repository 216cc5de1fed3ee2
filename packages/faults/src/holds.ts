/**
 * `npm run faults -- holds --holds 10000 --seed 7`: three processes exhaust one hard budget after another while they
 * are killed at random, on SQLite and on PostgreSQL. Checks that nothing is overspent, no counter drifts, and no
 * request that fits is refused.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { checkBudgets, checkEvidence, checkQuiet, checkUsage } from "@tollgate/testing";
import { startPostgres } from "@tollgate/testing/postgres";
import { readNumbers } from "./arguments.ts";
import { auditCounters, readAudit } from "./load/audit-counters.ts";
import { countFalseRefusals, countOverspends } from "./load/false-refusals.ts";
import { createSecrets } from "./load/keys.ts";
import { readLedger } from "./load/read-ledger.ts";
import { startWorkers } from "./load/workers.ts";
import { seededRandom } from "./random.ts";
import { type DatabaseLocation, openDatabase } from "./stores/database-location.ts";

const organizationId = "acme";
/** The limit of each key: about a hundred answers, and the holds of a dozen requests. */
const usd = 0.002;
const answersPerKey = 90;
const processes = 3;
const maxMs = 20 * 60_000;

const { holds, seed } = readNumbers({ holds: 10_000, seed: Date.now() % 1_000_000_000 });
const random = seededRandom(seed);
process.stdout.write(`${holds} holds, seed ${seed}\n`);
const folder = mkdtempSync(join(tmpdir(), "tollgate-holds-"));
const server = await startPostgres();
const sqliteFailed = await run("sqliteStore", { filename: join(folder, "tollgate.db") });
const postgresFailed = await run("postgresStore", { url: server.url, schema: "tollgate" });
await server.stop();
rmSync(folder, { recursive: true, force: true });
process.exit(sqliteFailed || postgresFailed ? 1 : 0);

async function run(name: string, place: DatabaseLocation): Promise<boolean> {
  const started = performance.now();
  const secrets = await createSecrets(place, {
    organizationId,
    count: Math.ceil(holds / answersPerKey),
  });
  await auditCounters(place);
  const workers = await startWorkers(place, { processes, usd });
  await workers.begin({ secrets, concurrency: 8, refusals: 2 });
  let kills = 0;
  for (;;) {
    await pause(1_000 + random() * 2_000);
    if ((await workers.isDone()) || performance.now() - started > maxMs) break;
    await workers.kill(Math.floor(random() * processes));
    kills++;
  }
  const isDone = await workers.isDone();
  await workers.close();

  const store = openDatabase(place);
  const ledger = await readLedger(store, { organizationId, budgetId: "each-key" });
  await store.close();
  const problems = [checkUsage, checkEvidence, checkQuiet].flatMap((check) => check(ledger));
  // Several commit at once, so the order of the leaves may differ from that of the holds: only their sums count here.
  const drift = checkBudgets(ledger).filter((problem) => !problem.includes("against a limit"));
  const audit = await readAudit(place);
  const limit = usd * 1_000_000_000;
  const amount = audit[0]?.held ?? 0;
  const overspends = countOverspends(audit, limit);
  const refused = ledger.leaves.filter(({ kind }) => kind === "decision");
  const falseRefusals = countFalseRefusals(refused, audit, { limit, amount });
  const seconds = Math.round((performance.now() - started) / 1_000);
  process.stdout.write(
    `${name}: ${ledger.steps.length} holds, ${refused.length} refusals, ${kills} kills, ${interrupted(ledger.steps)} orphans in ${seconds} s\n` +
      `  overspend ${overspends}, drift ${drift.length}, false refusals ${falseRefusals}, other problems ${problems.length}\n`,
  );
  for (const problem of [...drift, ...problems].slice(0, 20))
    process.stdout.write(`  ${problem}\n`);
  if (!isDone) process.stdout.write("  it did not finish\n");
  return (
    !isDone ||
    overspends + drift.length + problems.length + falseRefusals > 0 ||
    refused.length === 0
  );
}

function interrupted(steps: readonly { readonly outcome: string | null }[]): number {
  return steps.filter(({ outcome }) => outcome === "interrupted").length;
}
