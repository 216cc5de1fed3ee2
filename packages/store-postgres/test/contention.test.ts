import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import {
  attemptIntent,
  hold,
  insertKey,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

async function openOn(settings: pg.PoolConfig) {
  const schema = freshSchema();
  const pool = new pg.Pool({ connectionString: inject("postgresUrl"), ...settings });
  const store = postgresStore({ pool }, { schema });
  onTestFinished(async () => {
    await store.close();
    await pool.end();
  });
  await store.migrate();
  await insertKey(store);
  return { store, pool, schema };
}

it("holds no connection between opening and settling a Step (F36)", async () => {
  const { store, pool } = await openOn({ max: 1 });
  const ids = Array.from({ length: 20 }, (_, at) => `step ${at}`);
  await Promise.all(ids.map((id) => store.openStep(stepIntent(id))));
  expect(pool.idleCount).toBe(1);
  const results = await Promise.all(ids.map((id) => store.settleStep(stepSettlement(id))));
  expect(results.every(({ settled }) => settled)).toBe(true);
});

it("rejects after 2 seconds without a connection, or at once behind 256 waiting calls (F36)", async () => {
  const { store, pool } = await openOn({ max: 1 });
  const taken = await pool.connect();
  const openings = Array.from({ length: 300 }, (_, at) => store.openStep(stepIntent(`${at}`)));
  const results = await Promise.allSettled(openings);
  const reasons = results.map((result) =>
    result.status === "rejected" ? String(result.reason) : "",
  );
  expect(reasons.filter((reason) => reason.includes("256 calls are already waiting"))).toHaveLength(
    300 - 256,
  );
  expect(reasons.filter((reason) => reason.includes("within 2000 ms"))).toHaveLength(256);
  taken.release();
  expect(await store.openStep(stepIntent("after"))).toMatchObject({ opened: true });
  expect(
    (await store.steps.list({ organizationId: null }, { cursor: null, limit: 9 })).data,
  ).toHaveLength(1);
}, 10_000);

it("reports how many calls wait for a connection and for a statement", async () => {
  const { store, pool } = await openOn({ max: 1 });
  await store.openStep(stepIntent("open"));
  const taken = await pool.connect();
  const openings = Array.from({ length: 8 }, (_, at) => store.openStep(stepIntent(`${at}`)));
  const settling = store.settleStep(stepSettlement("open"));
  expect(store.status()).toMatchObject({ waiting: 9, inUse: 0 });
  const reading = store.steps.get(owner.organizationId, "open");
  expect(store.status().waiting).toBe(10);
  taken.release();
  await Promise.all([...openings, settling, reading]);
  expect(store.status()).toMatchObject({ waiting: 0, inUse: 0 });
});

it("runs a change again after a lock timeout, a deadlock or a conflict rolled it back (F35)", async () => {
  const { store, schema } = await openOn({ max: 8 });
  await store.openStep(stepIntent("first", [hold(1_000)]));
  await withClient(async (client) => {
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.budget_counters FOR UPDATE`);
    const waiting = store.openStep(stepIntent("second", [hold(1_000)]));
    // Longer than a call waits for a lock, so its first run gives up.
    await pause(1_700);
    await client.query("COMMIT");
    expect(await waiting).toMatchObject({ opened: true });
  });
});

it("enforces a budget on a server that serializes every transaction (F35)", async () => {
  const { store } = await openOn({
    max: 8,
    options: "-c default_transaction_isolation=serializable",
  });
  const openings = await Promise.allSettled(
    Array.from({ length: 24 }, (_, at) => store.openStep(stepIntent(`${at}`, [hold(80)]))),
  );
  const opened = openings.filter((result) => result.status === "fulfilled" && result.value.opened);
  const { data } = await store.budgets.counters({ budgetId: "budget" }, { cursor: null, limit: 1 });
  expect(data).toMatchObject([{ settled: 0, held: opened.length * 10 }]);
  expect(opened.length).toBeGreaterThan(0);
  expect(opened.length).toBeLessThanOrEqual(8);
});

/** How many deadlocks the server has detected so far. */
const deadlocks = () =>
  withClient(async (client) => {
    await client.query("SELECT pg_stat_force_next_flush()");
    const { rows } = await client.query(
      "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    );
    return Number(rows[0].deadlocks);
  });

const fourHolds = ["a", "b", "c", "d"].map((budgetId) => ({ ...hold(1_000_000), budgetId }));

it("never deadlocks while further attempts release holds and take others (F35)", async () => {
  const { store } = await openOn({ max: 8 });
  const ids = Array.from({ length: 60 }, (_, at) => `step ${at}`);
  const [a = [], b = []] = [fourHolds.slice(0, 2), fourHolds.slice(2)];
  const before = await deadlocks();
  const openings = await Promise.all(
    ids.map(async (id, at) => {
      const [first, second] = at % 2 === 0 ? [a, b] : [b, a];
      await store.openStep(stepIntent(id, first));
      return store.openAttempt(attemptIntent(id, second));
    }),
  );
  expect(openings).toEqual(ids.map(() => ({ opened: true })));
  expect(await deadlocks()).toBe(before);
  for (const { budgetId } of fourHolds) {
    const { data } = await store.budgets.counters({ budgetId }, { cursor: null, limit: 9 });
    expect(data).toMatchObject([{ settled: 30 * 7, held: 30 * 10 }]);
  }
});

it("never deadlocks while many Steps use the same budgets in any order (F35)", async () => {
  const { store } = await openOn({ max: 8 });
  const before = await deadlocks();
  const ids = Array.from({ length: 60 }, (_, at) => `step ${at}`);
  await Promise.all(
    ids.map(async (id, at) => {
      await store.openStep(stepIntent(id, fourHolds.slice(at % 3)));
      await store.settleStep(stepSettlement(id));
    }),
  );
  expect(await deadlocks()).toBe(before);
  expect(
    (
      await store.steps.list(
        { organizationId: owner.organizationId, outcome: ["completed"] },
        { cursor: null, limit: 100 },
      )
    ).data,
  ).toHaveLength(60);
});

it("reports a read-only database, and still reads from it (F33)", async () => {
  const { store, schema } = await openOn({ max: 2 });
  const pool = new pg.Pool({
    connectionString: inject("postgresUrl"),
    options: "-c default_transaction_read_only=on",
  });
  const standby = postgresStore({ pool }, { schema, migrate: "check" });
  onTestFinished(() => pool.end());
  await standby.migrate();
  await store.openStep(stepIntent("there"));
  expect(await standby.steps.get(owner.organizationId, "there")).not.toBeNull();
  await expect(standby.openStep(stepIntent("here"))).rejects.toThrow(
    "read-only transaction (25006)",
  );
  await standby.close();
});
