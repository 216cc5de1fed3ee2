/**
 * `npm run bench:pgbench -- --seconds 10 --clients 8 --rounds 3`: opens and settles Steps through the PostgreSQL store,
 * and runs the same statements with `pgbench`, in turn: first without budgets, then with one budget for all Steps.
 * `--durable 0` skips flushing to disk, which takes both the same time.
 */
import { postgresStore } from "@tollgate/store-postgres";
import { startPostgres } from "@tollgate/testing/postgres";
import pg from "pg";
import { median } from "./growth/compare.ts";
import { runPgbench, toScript } from "./pgbench/script.ts";
import {
  insertMeasuredKey,
  type MeasuredStep,
  measuredOwner,
  recordStatements,
  runStore,
  sharedHold,
} from "./pgbench/store.ts";
import { readNumbers } from "./read-numbers.ts";
import { stepIntent, stepSettlement } from "./step-intents.ts";

const at = Date.UTC(2026, 0, 5);
const recordedId = "recorded-step";
/** More Steps than connections, so no connection waits for the next Step. */
const inFlightPerClient = 4;

const { seconds, clients, rounds, durable } = readNumbers({
  seconds: 10,
  clients: 8,
  rounds: 3,
  durable: 1,
});
const givenUrl = process.env["TOLLGATE_TEST_PG_URL"];
const server = givenUrl === undefined ? await startPostgres({ fsync: durable === 1 }) : null;
const url = server?.url ?? givenUrl ?? "";
const pool = new pg.Pool({ connectionString: url, max: clients });
pool.on("error", () => {});

print(`open + settle per second, ${clients} connections, ${rounds} rounds of ${seconds} s each`);
print(`${"".padEnd(24)}${"store".padStart(9)}${"pgbench".padStart(9)}${"ratio".padStart(7)}`);
await measure("without budgets", { at, holds: [] });
await measure("one budget for all", { at, holds: [sharedHold] });
await pool.end();
await server?.stop();

async function measure(name: string, step: MeasuredStep): Promise<void> {
  const schema = `tollgate_pgbench_${step.holds.length}`;
  await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  const script = await prepare(schema, step);
  const rates = { store: [] as number[], pgbench: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    const inFlight = clients * inFlightPerClient;
    rates.store.push(await runStore(pool, { schema, inFlight, seconds, round, step }));
    rates.pgbench.push(await runPgbench({ url, script, clients, seconds }));
  }
  await pool.query(`DROP SCHEMA ${schema} CASCADE`);
  const [ours, theirs] = [median(rates.store), median(rates.pgbench)];
  const figures = [`${ours.toFixed(0).padStart(9)}`, `${theirs.toFixed(0).padStart(9)}`];
  print(`${name.padEnd(24)}${figures.join("")}${(ours / theirs).toFixed(2).padStart(7)}`);
}

/** Creates the schema, and the script with the statements of one Step. */
async function prepare(schema: string, { holds }: MeasuredStep): Promise<string> {
  const store = postgresStore({ pool }, { schema });
  await store.migrate();
  await insertMeasuredKey(store, at);
  await store.close();
  const statements = await recordStatements(pool, schema, async (recorded) => {
    await recorded.openStep(stepIntent(recordedId, measuredOwner, at, holds));
    await recorded.settleStep(stepSettlement(recordedId, at));
  });
  return toScript(
    statements.filter(({ text }) => /commit_v\d/.test(text)),
    recordedId,
  );
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
