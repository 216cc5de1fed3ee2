/**
 * `npm run faults -- rate-limits --seconds 60 --clients 64 --processes 4 --rounds 31 --seed 7`: processes whose clients
 * all ask for more than their rate limits allow, on SQLite and on PostgreSQL. Checks by the times that the store
 * recorded that no window of a period's length had more than the limit and the burst, and that at least 0.98 of every
 * limit was served. Then compares, in turns, requests without a limit and with one that all share and none exceeds: in the
 * median of the rounds it may cost less than a tenth of the throughput. The processor time per request is only reported.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "@tollgate/testing/postgres";
import pg from "pg";
import { readNumbers } from "./arguments.ts";
import { checkHistory } from "./rate-limits/check-history.ts";
import { measureCost, median, type Round } from "./rate-limits/measure-cost.ts";
import { loadLimits, type RateLoadResult } from "./rate-limits/run-load.ts";
import type { DatabaseLocation } from "./stores/database-location.ts";

const minShare = 0.98;
const maxCost = 0.1;

const { seconds, clients, processes, rounds, seed } = readNumbers({
  seconds: 30,
  clients: 32,
  processes: 2,
  rounds: 11,
  seed: Date.now() % 1_000_000_000,
});
/** Short, so that a stall of the machine or the database falls on few rounds and the median leaves it out. */
const roundMs = 1_000;
const stepMs = 8_000;
process.stdout.write(
  `${clients} clients in ${processes} processes for ${seconds} s, seed ${seed}\n`,
);
const folder = mkdtempSync(join(tmpdir(), "tollgate-rates-"));
const server = await startPostgres();
let failed = await run("sqliteStore", null, (name) => ({ filename: join(folder, `${name}.db`) }));
const postmaster = await serverProcess(server.url);
failed =
  (await run("postgresStore", postmaster, (schema) => ({ url: server.url, schema }))) || failed;
await server.stop();
rmSync(folder, { recursive: true, force: true });
process.exit(failed ? 1 : 0);

async function run(
  store: string,
  serverId: number | null,
  place: (name: string) => DatabaseLocation,
): Promise<boolean> {
  const load = { seconds, clients, processes, stepMs, seed };
  const isExact = reportLimits(store, await loadLimits(place("limits"), load));
  if (rounds === 0) return !isExact;
  const plan = { clients, processes, rounds, roundMs, seed, server: serverId };
  const cost = await measureCost(place("cost"), plan);
  const isCheap = reportCost(cost.without, cost.with);
  return !(isExact && isCheap);
}

function reportLimits(store: string, result: RateLoadResult): boolean {
  const { histories, answered, rejected, unavailable, problems } = result;
  process.stdout.write(
    `${store}: ${answered} answered, ${rejected} rejected, ${unavailable} unavailable, ${result.failed} failed\n`,
  );
  let isGood = result.failed === 0 && problems.length === 0;
  for (const history of histories)
    for (const { most, allowed, share } of checkHistory(history)) {
      const isKept = most <= allowed && share !== null && share >= minShare;
      isGood &&= isKept;
      const served = share === null ? "never exceeded" : `${share.toFixed(3)} served`;
      process.stdout.write(
        `  ${history.limit.id.padEnd(16)} at most ${most} of ${allowed}, ${served}${isKept ? "" : "  FAILED"}\n`,
      );
    }
  for (const problem of problems.slice(0, 20)) process.stdout.write(`  ${problem}\n`);
  return isGood;
}

/** Compares the two halves of each round: the machine may be busier in one round than in another. */
function reportCost(without: readonly Round[], withLimit: readonly Round[]): boolean {
  const growth = (field: keyof Round): number =>
    median(withLimit.map((round, at) => round[field] / (without[at]?.[field] ?? 0) - 1));
  const cpu = growth("cpuMs");
  const throughput = -growth("requestsPerSecond");
  const usual = (field: keyof Round): number => median(without.map((round) => round[field]));
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const isCheap = throughput < maxCost;
  process.stdout.write(
    `  shared limit: ${percent(throughput)} less throughput (${usual("requestsPerSecond").toFixed(0)}/s without)${isCheap ? "" : "  FAILED"}, ` +
      `${percent(cpu)} more processor time (${usual("cpuMs").toFixed(2)} ms per request without)\n`,
  );
  return isCheap;
}

/** The process id of the PostgreSQL server that started the process of a connection. */
async function serverProcess(url: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ pid: string }>(
    "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid",
  );
  await client.end();
  return Number(rows[0]?.pid);
}
