import { setTimeout as pause } from "node:timers/promises";
import { openStep, settleStep } from "@tollgate/store-engine";
import { tcpProxy } from "@tollgate/testing";
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import {
  hold,
  insertKey,
  leafOf,
  owner,
  paceHold,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { createDatabase } from "../src/database/database.ts";
import { promised } from "../src/database/task.ts";
import type { Driver } from "../src/driver/driver.ts";
import { type PostgresPool, postgresStore } from "../src/index.ts";
import { createPool, freshSchema, poolQuerying, storeOver, withClient } from "./databases.ts";

const page = { cursor: null, limit: 100 };

/** A store that reaches the server through a proxy, and one that reaches it directly. */
async function openBehindProxy() {
  const direct = new URL(inject("postgresUrl"));
  const proxy = await tcpProxy({ port: Number(direct.port) });
  const through = new URL(direct);
  through.port = String(proxy.port);
  const schema = freshSchema();
  const store = postgresStore({ url: through.href }, { schema });
  const peer = postgresStore({ url: direct.href }, { schema });
  onTestFinished(async () => {
    proxy.mend();
    await proxy.close();
    await store.close();
    await peer.close();
  });
  await store.migrate();
  await insertKey(store);
  return { store, peer, proxy, schema, through: through.href };
}

function openTorn(driver: Driver) {
  return promised(driver.open((view) => openStep(view, stepIntent("torn", [hold(10)]))));
}

function settleTorn(driver: Driver) {
  return promised(driver.settle((view) => settleStep(view, stepSettlement("torn"))));
}

it.each(["before", "after"] as const)(
  "opens a Step once when the connection is cut %s its commit (F34)",
  async (when) => {
    const { store, peer, proxy } = await openBehindProxy();
    const happened = proxy.cutAt("opening of torn", when);
    const opening = await store.openStep(stepIntent("torn", [hold(10)]));
    await happened;
    expect(opening).toMatchObject({ opened: true, sessionId: "session of torn" });
    expect((await peer.steps.list({ organizationId: null }, page)).data).toHaveLength(1);
    expect((await peer.evidence.list({ organizationId: "acme" }, page)).data).toHaveLength(2);
    const { data } = await peer.budgets.counters({ budgetId: "budget" }, page);
    expect(data).toMatchObject([{ settled: 0, held: 10 }]);
  },
);

it("returns the paces of a Step whose opening got no answer (F34)", async () => {
  const { store, proxy } = await openBehindProxy();
  await store.openStep(stepIntent("first", [paceHold()]));
  const happened = proxy.cutAt("opening of torn", "after");
  const opening = await store.openStep(
    stepIntent("torn", [paceHold(), { ...paceHold(), budgetId: "second" }]),
  );
  await happened;
  expect(opening).toMatchObject({ opened: true, paces: [1_002_000, 1_001_000] });
});

it.each(["before", "after"] as const)(
  "settles a Step once, and reports its outcome, when the connection is cut %s its commit (F34)",
  async (when) => {
    const { store, peer, proxy } = await openBehindProxy();
    await store.openStep(stepIntent("torn", [hold(10)]));
    const happened = proxy.cutAt("step.settled torn", when);
    expect(await store.settleStep(stepSettlement("torn"))).toEqual({
      settled: true,
      outcome: "completed",
    });
    await happened;
    const { data } = await peer.budgets.counters({ budgetId: "budget" }, page);
    expect(data).toMatchObject([{ settled: 7, held: 0 }]);
    expect((await peer.evidence.list({ organizationId: "acme" }, page)).data).toHaveLength(3);
  },
);

it("does not report the settlement of another process as its own (F34)", async () => {
  const { store, peer, schema } = await openBehindProxy();
  await store.openStep(stepIntent("torn", [hold(10)]));
  const interrupted = (at: number) => ({
    ...stepSettlement("torn"),
    ...({ at, outcome: "interrupted", reason: "process_lost", reply: null } as const),
  });
  let settledBefore: Promise<unknown> | null = null;
  const losing = poolQuerying(createPool(), (query) => (sent, answered) => {
    if (settledBefore || sent.text !== "COMMIT") return query(sent, answered);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    settledBefore = promise;
    query({ text: "ROLLBACK" }, async () => {
      resolve(await peer.settleStep(interrupted(1)));
      answered(new Error("Query read timeout"), undefined);
    });
  });
  const late = postgresStore({ pool: losing }, { schema });
  onTestFinished(() => late.close());
  expect(await late.settleStep(interrupted(2))).toEqual({ settled: false, outcome: "interrupted" });
  expect(await settledBefore).toEqual({ settled: true, outcome: "interrupted" });
});

it.each([
  ["opening", "opening of torn", openTorn],
  ["settlement", "step.settled torn", settleTorn],
] as const)(
  "waits longer before each repeat of a Step's %s whose commit got no answer (F34)",
  async (_end, text, run) => {
    const { peer, proxy, schema, through } = await openBehindProxy();
    const pool = new pg.Pool({ connectionString: through });
    const pauses: number[] = [];
    const pause = async (milliseconds: number): Promise<void> => {
      pauses.push(milliseconds);
      // The first repeat gets no answer either.
      if (pauses.length === 1) void proxy.cutAt("COMMIT\u0000", "after");
    };
    const { driver, close } = createDatabase({
      pool,
      schema,
      migrate: "check",
      namedStatements: true,
      most: null,
      end: () => pool.end(),
      chance: { random: () => 0.5, pause },
    });
    onTestFinished(close);
    // The process then knows the key, so the Step shares a statement.
    await promised(driver.open((view) => openStep(view, stepIntent("first"))));
    if (run === settleTorn) await openTorn(driver);
    const happened = proxy.cutAt(text, "after");
    expect(await run(driver)).toMatchObject({ isUnsure: true });
    await happened;
    expect(pauses).toEqual([20, 40]);
    expect((await peer.steps.list({ organizationId: null }, page)).data).toHaveLength(2);
  },
);

it("writes all or nothing of a change when the connection is cut on COMMIT (F34)", async () => {
  const { store, peer, proxy } = await openBehindProxy();
  const budget = {
    id: "b",
    scope: {},
    unit: "usd",
    limit: 1,
    period: "day",
    mode: "hard",
    warnAt: [],
  } as const;
  const { leaf } = stepSettlement("budget");
  // The zero byte excludes "READ COMMITTED", with which the transaction begins.
  const happened = proxy.cutAt("COMMIT\u0000", "after");
  // It is unknown whether the budget existed before, so the store does not retry.
  await expect(store.budgets.insert(budget, leaf)).rejects.toThrow("PostgreSQL store");
  await happened;
  expect(await peer.budgets.list()).toHaveLength(1);
  expect(await peer.budgets.version()).toBe(1);
});

it("does not repeat a change of keys whose outcome is unknown (F34)", async () => {
  const { store, peer, proxy } = await openBehindProxy();
  let asked = 0;
  const happened = proxy.cutAt("COMMIT\u0000", "after");
  const revocation = store.keys.change({ organizationId: "acme", id: owner.keyId }, (key) =>
    key.revokedAt === null
      ? { patch: { revokedAt: 7 }, leaf: leafOf("key.revoked", `revocation ${++asked}`) }
      : null,
  );
  // A second run would find nothing to revoke and report that, or write a second leaf.
  await expect(revocation).rejects.toThrow("PostgreSQL store");
  await happened;
  expect(asked).toBe(1);
  const { data } = await peer.evidence.list({ organizationId: "acme" }, page);
  expect(data.filter(({ kind }) => kind === "key.revoked")).toHaveLength(1);
});

it("continues after every backend ends, and idle connections do not end the process (F33, S43)", async () => {
  const { store, schema } = await openBehindProxy();
  await Promise.all(Array.from({ length: 8 }, (_, at) => store.openStep(stepIntent(`idle ${at}`))));
  await withClient((client) =>
    client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'tollgate' AND query LIKE $1`,
      [`%${schema}%`],
    ),
  );
  const openings = await Promise.all(
    Array.from({ length: 8 }, (_, at) => store.openStep(stepIntent(`after ${at}`))),
  );
  expect(openings.every(({ opened }) => opened)).toBe(true);
});

it("rejects within 5 seconds if the server stops answering, and recovers with it (F37)", async () => {
  const { store, proxy } = await openBehindProxy();
  proxy.blackHole();
  const started = performance.now();
  await expect(store.openStep(stepIntent("silent"))).rejects.toThrow("PostgreSQL store");
  expect(performance.now() - started).toBeLessThan(5_000);
  proxy.mend();
  expect(await store.openStep(stepIntent("heard"))).toMatchObject({ opened: true });
}, 10_000);

it("rejects within 5 seconds the Steps that wait to run alone while the server is silent (F37)", async () => {
  const { store, proxy } = await openBehindProxy();
  await store.openStep(stepIntent("first"));
  proxy.blackHole();
  const started = performance.now();
  // They don't fit their budget, and every rejected Step runs alone.
  const unfit = Array.from({ length: 12 }, (_, at) =>
    store.openStep(stepIntent(`unfit ${at}`, [hold(5)])),
  );
  const results = await Promise.allSettled(unfit);
  expect(performance.now() - started).toBeLessThan(5_000);
  expect(results.map(({ status }) => status)).toEqual(unfit.map(() => "rejected"));
}, 10_000);

it("opens every waiting Step once a silent server answers again (F37)", async () => {
  const { store, proxy, schema } = await openBehindProxy();
  await store.openStep(stepIntent("first", [hold(1_000_000)]));
  // Each statement locks the counter for a while, as the flush of its commit does on a slow disk.
  await withClient((client) =>
    client.query(`CREATE FUNCTION ${schema}.flush() RETURNS TRIGGER LANGUAGE plpgsql
        AS $$ BEGIN PERFORM pg_sleep(0.06); RETURN NULL; END $$;
      CREATE TRIGGER flushed AFTER UPDATE ON ${schema}.budget_counters
        FOR EACH ROW EXECUTE FUNCTION ${schema}.flush()`),
  );
  proxy.blackHole();
  const openings = Array.from({ length: 64 }, (_, at) =>
    store.openStep(stepIntent(`waiting ${at}`, [hold(1_000_000)])),
  );
  await pause(2_600);
  // Their statement got no answer. Few run alone at once, and the others wait for their turn.
  const { waiting } = store.status();
  proxy.mend();
  expect((await Promise.all(openings)).filter(({ opened }) => opened)).toHaveLength(64);
  expect(waiting).toBeGreaterThanOrEqual(60);
  expect(store.status().waiting).toBe(0);
}, 15_000);

it("settles a Step once when recovery and its own process settle it at once (F28)", async () => {
  const { store, peer } = await openBehindProxy();
  await store.openStep(stepIntent("raced", [hold(10)]));
  const recovery = { ...stepSettlement("raced"), outcome: "interrupted" } as const;
  const results = await Promise.all([
    ...Array.from({ length: 4 }, () => peer.settleStep(recovery)),
    store.settleStep(stepSettlement("raced")),
  ]);
  expect(results.filter(({ settled }) => settled)).toHaveLength(1);
  expect((await peer.steps.get(owner.organizationId, "raced"))?.outcome).toBe(results[0]?.outcome);
  const { data } = await peer.budgets.counters({ budgetId: "budget" }, page);
  expect(data).toMatchObject([{ settled: 7, held: 0 }]);
});

it("works as before after idle connections are cut", async () => {
  const { store, proxy } = await openBehindProxy();
  await Promise.all(Array.from({ length: 4 }, (_, at) => store.steps.get("acme", `${at}`)));
  expect(proxy.connections()).toBeGreaterThan(1);
  proxy.cut();
  expect(await store.openStep(stepIntent("next"))).toMatchObject({ opened: true });
});

it("goes on after the application has dropped the prepared statements of its pool (F33)", async () => {
  const pool = createPool({ max: 1 });
  const store = await storeOver(pool);
  for (const id of ["first", "second"]) {
    expect(await store.openStep(stepIntent(id))).toMatchObject({ opened: true });
    await pool.query("DISCARD ALL");
    expect(await store.settleStep(stepSettlement(id))).toMatchObject({ settled: true });
    await pool.query("DISCARD ALL");
    expect(await store.steps.get("acme", id)).toMatchObject({ outcome: "completed" });
  }
});

it("goes on after every connection of a pool has lost its prepared statements (F33)", async () => {
  const pool = createPool();
  const store = await storeOver(pool);
  await store.openStep(stepIntent("first"));
  // Each connection prepares the statement.
  await Promise.all(Array.from({ length: 100 }, () => store.steps.get("acme", "first")));
  const clients = await Promise.all(Array.from({ length: 10 }, () => pool.connect()));
  for (const client of clients) await client.query("DISCARD ALL");
  for (const client of clients) client.release();
  expect(await store.steps.get("acme", "first")).toMatchObject({ outcome: null });
});

it("keeps a batch together after its connection has lost its prepared statements (F33)", async () => {
  const pool = createPool({ max: 1 });
  let transactions = 0;
  const counting = poolQuerying(pool, (query) => (sent, answered) => {
    if (sent.text.startsWith("BEGIN")) transactions++;
    return query(sent, answered);
  });
  const store = await storeOver(counting);
  const names = Array.from({ length: 200 }, (_, at) => `step ${at}`);
  await Promise.all(names.map((name) => store.openStep(stepIntent(name))));
  await pool.query("DISCARD ALL");
  transactions = 0;
  const settled = await Promise.all(names.map((name) => store.settleStep(stepSettlement(name))));
  expect(settled.filter(({ settled }) => settled)).toHaveLength(200);
  expect(transactions).toBe(0);
});

it("goes on after a pooler has moved it to a connection with statements of the same names (F33)", async () => {
  const pool = createPool();
  const prepared = new Set<string>();
  const moving = poolQuerying(pool, (query) => (sent, answered) => {
    const { name } = sent;
    if (name === undefined || prepared.has(name)) return query(sent, answered);
    prepared.add(name);
    return query({ text: `PREPARE ${name} AS SELECT 1` }, () => query(sent, answered));
  });
  const store = await storeOver(moving);
  expect(await store.openStep(stepIntent("first"))).toMatchObject({ opened: true });
  expect(await store.settleStep(stepSettlement("first"))).toMatchObject({ settled: true });
  expect(prepared.size).toBeGreaterThan(0);
});

it("opens and settles every waiting Step after a connection was refused (F33)", async () => {
  const pool = createPool();
  let refusals = 0;
  const refusing: PostgresPool = {
    on: (event, listener) => pool.on(event, listener),
    off: (event, listener) => pool.off(event, listener),
    connect(taken) {
      if (refusals === 0) return pool.connect(taken);
      refusals--;
      setTimeout(taken, 5, new Error("connect ECONNREFUSED"), undefined);
    },
  };
  const store = await storeOver(refusing);
  const names = (of: string) => Array.from({ length: 200 }, (_, at) => `${of} ${at}`);
  await Promise.all(names("old").map((name) => store.openStep(stepIntent(name))));
  refusals = 3;
  const settlements = names("old").map((name) => store.settleStep(stepSettlement(name)));
  const openings = names("new").map((name) => store.openStep(stepIntent(name)));
  const results = await Promise.allSettled([...settlements, ...openings]);
  expect(results.filter(({ status }) => status === "rejected")).toEqual([]);
});
