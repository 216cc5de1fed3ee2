/**
 * `npm run bench:usage -- --steps 1000000 --sessions 20000`: fills each store with 30 days of Steps, folds them into sums by
 * hour, and reads spend, tokens, errors and latency of all of them. Prints the CPU time per folded Step, the time of each
 * series, and for how long the event loop was held up. Exits with 1 if that or a series took longer than its bound.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGateway, everyOrganization, type Gateway, type SeriesOptions } from "@tollgate/core";
import {
  encodeCursor,
  hourDetails,
  type Store,
  type StorePage,
  type UsageHour,
} from "@tollgate/core/store";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import { startPostgres } from "@tollgate/testing/postgres";
import { type Delay, DelayWatch, describeDelay } from "./delays.ts";
import { fillPostgres, fillSqlite } from "./growth/fill.ts";
import { firstAt, type Size } from "./growth/history.ts";
import { readNumbers } from "./read-numbers.ts";
import { organizationId } from "./step-intents.ts";

const { steps, sessions, days, sqlite, memory, postgres, maxSeries } = readNumbers({
  ...{ steps: 100_000, sessions: 2_000, days: 30, sqlite: 1, memory: 1, postgres: 1 },
  maxSeries: 50,
});
const size: Size = {
  ...{ steps, sessions, stepsAlone: true },
  apart: Math.floor((days * 24 * 3_600_000) / steps),
};
/** The most CPU time between two turns of the event loop, in milliseconds. */
const maxDelay = 20;
const rounds = 9;
const series: readonly SeriesOptions[] = [
  { bucket: "day", by: "model" },
  { bucket: "hour" },
  { bucket: "hour", by: "outcome" },
  { bucket: "hour", by: ["model", "user"] },
];
const over: string[] = [];

if (sqlite === 1 || memory === 1) await onSqlite();
if (postgres === 1) await onPostgres();
print(over.length === 0 ? "all within bounds" : `over bounds: ${over.join("; ")}`);
process.exit(over.length === 0 ? 0 : 1);

async function onSqlite(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-usage-"));
  try {
    const filename = join(folder, "tollgate.db");
    await filled("SQLite", () => fillSqlite(filename, size));
    const store = sqliteStore({ filename });
    await measure("SQLite", store, async (gateway, watch) => {
      await fold("SQLite", gateway, watch);
      if (memory === 1) await onMemory(store);
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A million Steps don't fit into memory, but their sums do: those of another store. */
async function onMemory(from: Store): Promise<void> {
  const store = memoryStore();
  await measure("memory", store, async (gateway) => {
    await gateway.keys.create({ organizationId, userId: "user", label: "a key" });
    const mark = encodeCursor("steps", { order: firstAt, tie: "0" });
    let after: string | null = null;
    for (const detail of hourDetails) {
      let cursor: string | null = null;
      do {
        const paging = { cursor, limit: 50 };
        const page: StorePage<UsageHour> = await from.usage.hours(
          { organizationId, detail },
          paging,
        );
        await store.usage.add({ organizationId, after, mark, hours: page.data });
        [cursor, after] = [page.nextCursor, mark];
      } while (cursor !== null);
    }
  });
}

async function onPostgres(): Promise<void> {
  const { url, stop } = await startPostgres();
  try {
    const schema = "usage";
    await filled("PostgreSQL", () => fillPostgres({ url, schema, size }));
    const store = postgresStore({ url }, { schema });
    await measure("PostgreSQL", store, (gateway, watch) => fold("PostgreSQL", gateway, watch));
  } finally {
    await stop();
  }
}

async function filled(name: string, fill: () => Promise<void>): Promise<void> {
  const begun = performance.now();
  await fill();
  print(`${name}: ${steps} Steps created in ${Math.round((performance.now() - begun) / 1_000)} s`);
}

/** Prepares a store and reads each series. */
async function measure(
  name: string,
  store: Store,
  prepare: (gateway: Gateway, watch: DelayWatch) => Promise<void>,
): Promise<void> {
  await using gateway = createGateway({
    ...{ store, providers: { sim: simProvider() }, maintenance: false },
  });
  await gateway.ready();
  const watch = new DelayWatch();
  try {
    await prepare(gateway, watch);
    for (const options of series) await readSeries(name, gateway, options, watch);
  } finally {
    watch.stop();
  }
}

async function fold(name: string, gateway: Gateway, watch: DelayWatch): Promise<void> {
  watch.take();
  const before = process.cpuUsage();
  const folded = await gateway.rollUp();
  const { user, system } = process.cpuUsage(before);
  const each = ((user + system) / folded).toFixed(1);
  print(`${name}: ${folded} Steps folded at ${each} µs CPU each, ${held(name, watch.take())}`);
}

async function readSeries(
  name: string,
  { steps: records }: Gateway,
  options: SeriesOptions,
  watch: DelayWatch,
): Promise<void> {
  watch.take();
  const times: number[] = [];
  const cpuTimes: number[] = [];
  let [rows, counted] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage();
    const begun = performance.now();
    const found = await records.series({ organizationId: everyOrganization }, options);
    times.push(performance.now() - begun);
    const { user, system } = process.cpuUsage(before);
    cpuTimes.push((user + system) / 1_000);
    rows = found.length;
    counted = found.reduce((sum, row) => sum + row.steps, 0);
  }
  const [median, fastest] = middleAndLeast(times);
  const cpu = middleAndLeast(cpuTimes).map((time) => time.toFixed(0));
  const what = `${name}, by ${[options.bucket, ...[options.by ?? []].flat()].join(" and ")}`;
  if (median > maxSeries) over.push(`${what}: ${median.toFixed(0)} ms`);
  print(
    `${what}: ${rows} rows of ${counted} Steps in ${median.toFixed(0)} ms, at best ${fastest.toFixed(0)}, ${cpu.join(" and ")} ms CPU, ${held(what, watch.take())}`,
  );
}

function middleAndLeast(times: number[]): readonly [number, number] {
  times.sort((a, b) => a - b);
  return [times[Math.floor(times.length / 2)] ?? 0, times[0] ?? 0];
}

function held(what: string, delay: Delay): string {
  if (delay.cpu > maxDelay) over.push(`${what}: ${delay.cpu.toFixed(0)} ms of CPU`);
  return describeDelay(delay);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
