/**
 * `npm run bench:growth -- --steps 1000000 --sessions 100000 --rounds 40`: fills both SQL stores and times queries,
 * compared with the same queries on 1,000 rows. Fails if one takes more than 5 times as long. With `--organizations 100000`,
 * the Steps belong to so many organizations, and it runs the work on all of them. Fails if that holds up the event loop for
 * more than 100 ms of CPU time.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import { startPostgres } from "@tollgate/testing/postgres";
import { compare, type Filled } from "./growth/compare.ts";
import { fillPostgres, fillSqlite } from "./growth/fill.ts";
import type { Size } from "./growth/history.ts";
import { measureOrganizations, questions } from "./growth/questions.ts";
import { readNumbers } from "./read-numbers.ts";

const maxRatio = 5;
/** Milliseconds of CPU time in one turn of the event loop. */
const maxDelay = 100;
const fewRows: Size = { steps: 1_000, sessions: 1_000 };
const { steps, sessions, rounds, organizations, sqlite, postgres } = readNumbers({
  steps: 1_000_000,
  sessions: 100_000,
  rounds: 40,
  organizations: 0,
  sqlite: 1,
  postgres: 1,
});
const manyRows: Size = { steps, sessions };
const slow = [
  ...(sqlite === 1 ? await onSqlite() : []),
  ...(postgres === 1 ? await onPostgres() : []),
];
const bound = organizations > 0 ? `${maxDelay} ms` : `${maxRatio} times`;
print(slow.length === 0 ? `all within ${bound}` : `over ${bound}: ${slow.join("; ")}`);
process.exit(slow.length === 0 ? 0 : 1);

async function onSqlite(): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-growth-"));
  const open = async (name: string, size: Size): Promise<Filled> => {
    const filename = join(folder, name);
    await fillSqlite(filename, size);
    return { store: sqliteStore({ filename }), size };
  };
  try {
    return await measure("SQLite", open);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function onPostgres(): Promise<readonly string[]> {
  const { url, stop } = await startPostgres();
  try {
    return await measure("PostgreSQL", async (schema, size) => {
      await fillPostgres({ url, schema, size });
      return { store: postgresStore({ url }, { schema }), size };
    });
  } finally {
    await stop();
  }
}

async function measure(
  database: string,
  open: (name: string, size: Size) => Promise<Filled>,
): Promise<readonly string[]> {
  if (organizations > 0) return measureMany(database, open);
  const started = performance.now();
  const few = await open("few", fewRows);
  const many = await open("many", manyRows);
  const seconds = Math.round((performance.now() - started) / 1_000);
  print(`${database}: ${steps} Steps and ${sessions} Sessions created in ${seconds} s`);
  print(`${"".padEnd(38)}${"1,000".padStart(10)}${"all".padStart(10)}${"ratio".padStart(8)}`);
  const over: string[] = [];
  for (const question of questions) {
    const { name, few: inFew, many: inMany } = await compare(question, few, many, rounds);
    const ratio = inMany / inFew;
    if (ratio > maxRatio) over.push(`${database}, ${name}`);
    print(
      `${name.padEnd(38)}${milliseconds(inFew)}${milliseconds(inMany)}${ratio.toFixed(2).padStart(8)}`,
    );
  }
  await few.store.close();
  await many.store.close();
  return over;
}

async function measureMany(
  database: string,
  open: (name: string, size: Size) => Promise<Filled>,
): Promise<readonly string[]> {
  const { store } = await open("many", { steps, sessions: organizations, organizations });
  print(`${database}: ${steps} Steps of ${organizations} organizations`);
  print(`${"".padEnd(38)}${"all".padStart(10)}${"held up".padStart(10)}`);
  const over: string[] = [];
  for (const { name, time, delay } of await measureOrganizations(store)) {
    if (delay.cpu > maxDelay) over.push(`${database}, ${name}`);
    print(`${name.padEnd(38)}${milliseconds(time)}${milliseconds(delay.cpu)}`);
  }
  return over;
}

function milliseconds(time: number): string {
  return `${time.toFixed(3)}`.padStart(10);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
