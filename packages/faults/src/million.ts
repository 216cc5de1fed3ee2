/**
 * `npm run faults -- million --holds 1000000 --seed 7`: two processes take a million holds, sixteen for each request,
 * on SQLite and on PostgreSQL, at most 20 minutes each. Meanwhile one of them is killed now and then, and the store
 * fails. Checks that nothing is overspent, no counter drifts, and no request that fits is refused. `--store 1` runs
 * SQLite only, `--store 2` PostgreSQL only.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createGateway } from "@tollgate/core";
import type { EvidenceLeaf, Store } from "@tollgate/core/store";
import { scriptedProvider } from "@tollgate/testing";
import { startPostgres } from "@tollgate/testing/postgres";
import { readNumbers } from "./arguments.ts";
import { auditCounters, readAudit, readLedgerSums } from "./load/audit-counters.ts";
import { countFalseRefusals, countOverspends } from "./load/false-refusals.ts";
import { createSecrets } from "./load/keys.ts";
import { startWorkers, type Workers } from "./load/workers.ts";
import { seededRandom } from "./random.ts";
import { type DatabaseLocation, openDatabase } from "./stores/database-location.ts";

const organizationId = "acme";
/** The limit of each key: about five hundred answers, and the holds of a hundred requests. */
const usd = 0.01;
const answersPerKey = 480;
const processes = 2;
const extraBudgets = 15;
const maxMs = 20 * 60_000;

const { holds, seed, failing, store } = readNumbers({
  holds: 1_000_000,
  seed: Date.now() % 1_000_000_000,
  failing: 2,
  store: 0,
});
const random = seededRandom(seed);
process.stdout.write(`${holds} holds, seed ${seed}, ${failing} of 1,000 changes fail\n`);
let failed = false;
if (store !== 2) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-million-"));
  failed = await run("sqliteStore", { filename: join(folder, "tollgate.db") });
  rmSync(folder, { recursive: true, force: true });
}
if (store !== 1) {
  const server = await startPostgres();
  failed = (await run("postgresStore", { url: server.url, schema: "tollgate" })) || failed;
  await server.stop();
}
process.exit(failed ? 1 : 0);

async function run(name: string, place: DatabaseLocation): Promise<boolean> {
  const started = performance.now();
  const count = Math.ceil(holds / (extraBudgets + 1) / answersPerKey);
  const secrets = await createSecrets(place, { organizationId, count });
  await auditCounters(place);
  const workers = await startWorkers(place, {
    processes,
    usd,
    extraBudgetCount: extraBudgets,
    failing,
  });
  await workers.begin({ secrets, concurrency: 8, refusals: 1, keepsIds: false });
  const kills = await killUntilDone(workers, started);
  const isDone = await workers.isDone();
  await workers.close();
  const seconds = Math.round((performance.now() - started) / 1_000);

  const sums = await readLedgerSums(place);
  const { drift, refusals } = await readRecords(place);
  const audit = await readAudit(place);
  const limit = usd * 1_000_000_000;
  const overspends = countOverspends(audit, limit);
  const amount = audit[0]?.held ?? 0;
  const falseRefusals = countFalseRefusals(refusals, audit, { limit, amount });
  process.stdout.write(
    `${name}: ${sums.holds} holds, ${refusals.length} refusals, ${kills} kills in ${seconds} s\n` +
      `  overspend ${overspends}, drift ${sums.drift} (reconciled: ${drift}), false refusals ${falseRefusals}\n`,
  );
  if (!isDone) process.stdout.write("  it did not finish\n");
  const wrong = overspends + sums.drift + drift + falseRefusals;
  return !isDone || wrong > 0 || refusals.length === 0 || sums.holds < holds * 0.9;
}

async function killUntilDone(workers: Workers, started: number): Promise<number> {
  for (let kills = 0; ; kills++) {
    const next = performance.now() + 4_000 + random() * 4_000;
    while (performance.now() < next) {
      await pause(500);
      if ((await workers.isDone()) || performance.now() - started > maxMs) return kills;
    }
    await workers.kill(Math.floor(random() * processes));
  }
}

/** The product's own view of its ledger, and every refusal that it recorded. */
async function readRecords(
  place: DatabaseLocation,
): Promise<{ readonly drift: number; readonly refusals: readonly EvidenceLeaf[] }> {
  const store = openDatabase(place);
  const providers = { test: scriptedProvider() };
  const gateway = createGateway({ store, providers, maintenance: false });
  const { drift } = await gateway.budgets.reconcile();
  const refusals = await refusalsIn(store);
  await gateway.close();
  return { drift: drift.length, refusals };
}

async function refusalsIn(store: Store): Promise<readonly EvidenceLeaf[]> {
  const refusals: EvidenceLeaf[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<Store["evidence"]["list"]>> = await store.evidence.list(
      { organizationId },
      { cursor, limit: 1_000 },
    );
    refusals.push(...page.data.filter(({ kind }) => kind === "decision"));
    cursor = page.nextCursor;
  } while (cursor !== null);
  return refusals;
}
