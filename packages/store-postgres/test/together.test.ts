import type { OpenStepResult, StepIntent } from "@tollgate/core/store";
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import {
  hold,
  insertKey,
  owner,
  paceHold,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema, poolQuerying, withClient } from "./databases.ts";

const page = { cursor: null, limit: 100 };
const names = Array.from({ length: 40 }, (_, at) => `step ${at}`);

async function openOneStore() {
  const schema = freshSchema();
  const store = postgresStore({ url: inject("postgresUrl") }, { schema });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  return { schema, store };
}

/** A Step that continues the Session that another Step created. */
function next(of: string, name: string): StepIntent {
  const intent = stepIntent(name, [], of);
  return { ...intent, transcript: { ...intent.transcript, sessionId: `session of ${of}` } };
}

const connections = 10;

/**
 * A store whose calls end only when the server ends them, so no stall of the machine does: its statements have no time
 * limits but those of locks, and its connections are open already. `failures` are those of its statements.
 */
async function openPatientStore() {
  const schema = freshSchema();
  const opened = await openPatiently(schema);
  await opened.store.migrate();
  await insertKey(opened.store);
  return { schema, ...opened };
}

async function openPatiently(schema: string) {
  const connectionString = inject("postgresUrl");
  const pool = new pg.Pool({ connectionString, application_name: schema, max: connections });
  onTestFinished(() => pool.end());
  const clients = await Promise.all(Array.from({ length: connections }, () => pool.connect()));
  for (const client of clients) client.release();
  const failures: Error[] = [];
  const patient = poolQuerying(pool, (query) => (sent, answered) => {
    const text = sent.text.replace(/statement_timeout = \d+/, "statement_timeout = 0");
    query({ ...sent, text, query_timeout: 0 }, (error, result) => {
      if (error) failures.push(error);
      answered(error, result);
    });
  });
  const store = postgresStore({ pool: patient }, { schema });
  onTestFinished(() => store.close());
  return { store, failures };
}

/** Lets statements that open or settle Steps wait for a lock until they have it. */
async function withoutLockTimeout(schema: string): Promise<void> {
  await withClient(async (client) => {
    const { rows } = await client.query(
      "SELECT pg_get_functiondef(oid) AS definition FROM pg_proc WHERE pronamespace = $1::regnamespace",
      [schema],
    );
    const parts = String(rows[0].definition).split(/(?<='lock_timeout', )[^,]+/);
    expect(parts).toHaveLength(3);
    await client.query(parts.join("'0'"));
  });
}

/** Watches the statements of a store's connections that wait for locks. */
async function watchLocked<Result>(
  schema: string,
  watch: (locked: () => Promise<readonly string[]>) => Promise<Result>,
): Promise<Result> {
  return withClient((client) =>
    watch(async () => {
      const { rows } = await client.query(
        `SELECT pid || ' ' || query_start AS statement FROM pg_stat_activity
          WHERE application_name = $1 AND wait_event_type = 'Lock'`,
        [schema],
      );
      return rows.map(({ statement }) => statement);
    }),
  );
}

/** Resolves when this many statements wait for locks. */
function untilLocked(schema: string, count: number): Promise<void> {
  return watchLocked(schema, async (locked) => {
    while ((await locked()).length < count);
  });
}

it("opens and settles concurrent Steps in few commits", async () => {
  const { schema, store } = await openOneStore();
  await store.openStep(stepIntent("first"));
  await Promise.all(names.map((name) => store.openStep(stepIntent(name, [hold(1_000)]))));
  await Promise.all(names.map((name) => store.settleStep(stepSettlement(name))));
  const { rows } = await withClient((client) =>
    client.query(
      `SELECT count(DISTINCT xmin::text)::int AS commits FROM ${schema}.leaves WHERE kind = ANY($1)`,
      [["step.opened", "step.settled"]],
    ),
  );
  expect(rows[0].commits).toBeLessThan(names.length);
  const { data } = await store.budgets.counters({ budgetId: "budget" }, page);
  expect(data).toMatchObject([{ settled: 40 * 7, held: 0 }]);
});

it("settles a Step and opens others in one commit", async () => {
  const { schema, store } = await openOneStore();
  await store.openStep(stepIntent("first"));
  await Promise.all([
    ...names.map((name) => store.openStep(stepIntent(name))),
    store.settleStep(stepSettlement("first")),
  ]);
  const { rows } = await withClient((client) =>
    client.query(
      `SELECT count(*)::int AS leaves, count(DISTINCT xmin::text)::int AS commits
        FROM ${schema}.leaves WHERE kind = ANY($1)`,
      [["step.opened", "step.settled"]],
    ),
  );
  expect(rows).toEqual([{ leaves: names.length + 2, commits: 2 }]);
});

it("settles open Steps while more are to be opened than may wait", async () => {
  const { store } = await openOneStore();
  await store.openStep(stepIntent("open"));
  const openings = Array.from({ length: 300 }, (_, at) => store.openStep(stepIntent(`new ${at}`)));
  const settling = store.settleStep(stepSettlement("open"));
  const results = await Promise.allSettled(openings);
  expect(results.filter(({ status }) => status === "rejected").length).toBeGreaterThan(0);
  await settling;
});

it("opens exactly as many concurrent Steps as fit a budget", async () => {
  const { store } = await openOneStore();
  const openings = await Promise.all(
    names.map((name, at) => {
      const ten = hold(200);
      return store.openStep(stepIntent(name, [at % 2 === 0 ? ten : { ...ten, amount: 5 }]));
    }),
  );
  expect(openings.filter(({ opened }) => !opened).length).toBeGreaterThan(0);
  // Only Steps that don't fit are refused, so the fives and tens use up the budget.
  const { data } = await store.budgets.counters({ budgetId: "budget" }, page);
  expect(data).toMatchObject([{ settled: 0, held: 200 }]);
});

it("opens in few commits what a pace allows, although each Step arrives at its own time", async () => {
  const { schema, store } = await openOneStore();
  const [start, burst] = [1_000_000_000, 100_000];
  const pace = (at: number, amount: number) => {
    const floor = start + at * 100;
    return { ...hold(floor + burst), unit: "requests_pace", amount, floor } as const;
  };
  await store.openStep(stepIntent("first", [pace(0, burst - 14_000)]));
  const openings = await Promise.all(
    names.map((name, at) => store.openStep(stepIntent(name, [pace(at, 1_000)]))),
  );
  const opened = openings.filter((one) => one.opened).length;
  expect(opened).toBeGreaterThanOrEqual(14);
  const { rows } = await withClient((client) =>
    client.query(
      `SELECT count(DISTINCT xmin::text)::int AS commits FROM ${schema}.leaves WHERE kind = 'step.opened'`,
    ),
  );
  expect(rows[0].commits).toBeLessThan(opened / 2);
});

it("settles a Step while another process has locked its pace of requests", async () => {
  const { schema, store } = await openOneStore();
  await store.openStep(stepIntent("paced", [paceHold()]));
  await withClient(async (client) => {
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.budget_counters FOR UPDATE`);
    expect(await store.settleStep(stepSettlement("paced"))).toMatchObject({ settled: true });
    await client.query("COMMIT");
  });
  const { data } = await store.budgets.counters({ budgetId: "budget" }, page);
  expect(data).toMatchObject([{ settled: 1_001_000, held: 0 }]);
});

it("opens the other Steps of a statement in which one fails", async () => {
  const { store } = await openOneStore();
  await store.openStep(stepIntent("taken"));
  const failing = stepIntent("failing");
  const newSessionId = "session of taken";
  const intents = [
    ...names.slice(0, 5).map((name) => stepIntent(name, [hold(1_000)])),
    { ...failing, transcript: { ...failing.transcript, newSessionId } },
    ...names.slice(5).map((name) => stepIntent(name, [hold(1_000)])),
  ];
  const results = await Promise.allSettled(intents.map((intent) => store.openStep(intent)));
  const failed = results.filter(({ status }) => status === "rejected");
  expect(failed).toMatchObject([{ reason: { code: "invalid_argument" } }]);
  expect((await store.steps.list({ organizationId: null }, page)).data).toHaveLength(41);
  const unknown = { ...stepSettlement("unknown") };
  const settlements = [...names.slice(0, 9).map(stepSettlement), unknown];
  const ends = await Promise.allSettled(settlements.map((one) => store.settleStep(one)));
  expect(ends.map(({ status }) => status)).toEqual([...Array(9).fill("fulfilled"), "rejected"]);
});

it("leaves connections for other calls while many Steps wait long for locks", async () => {
  const { schema, store } = await openPatientStore();
  const origins = names.slice(0, 30);
  await Promise.all(origins.map((name) => store.openStep(stepIntent(name))));
  let maxInUse = 0;
  await withClient(async (client) => {
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.sessions FOR UPDATE`);
    const waiting: Promise<OpenStepResult>[] = [];
    await watchLocked(schema, async (locked) => {
      const note = async (isReached: (statements: readonly string[]) => boolean): Promise<void> => {
        while (!isReached(await locked())) maxInUse = Math.max(maxInUse, store.status().inUse);
      };
      for (const [at, name] of origins.entries()) {
        waiting.push(store.openStep(next(name, `next to ${name}`)));
        await note(({ length }) => length >= Math.min(at + 1, 4));
      }
      // Two Steps, one after the other, wait for a lock until they give up.
      for (let round = 0; round < 2; round++) {
        const before = new Set(await locked());
        await note((statements) => !statements.some((one) => before.has(one)));
      }
    });
    await client.query("COMMIT");
    for (const one of waiting) expect(await one).toMatchObject({ opened: true });
  });
  // Four statements, and four Steps that run alone.
  expect(maxInUse).toBeLessThanOrEqual(8);
}, 20_000);

it("runs other Steps alone while many wait long for Sessions that another process has locked", async () => {
  const { schema, store } = await openPatientStore();
  const origins = names.slice(0, 8);
  await Promise.all(origins.map((name) => store.openStep(stepIntent(name))));
  const results = await withClient(async (client) => {
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.sessions FOR UPDATE`);
    const waiting = Promise.allSettled(
      origins.map((name) => store.openStep(next(name, `next to ${name}`))),
    );
    await untilLocked(schema, 4);
    // It doesn't fit its budget, and every rejected Step runs alone.
    expect(await store.openStep(stepIntent("rejected", [hold(5)]))).toMatchObject({
      opened: false,
    });
    await client.query("COMMIT");
    return waiting;
  });
  // None of them had to give up before.
  expect(results).toMatchObject(origins.map(() => ({ value: { opened: true } })));
}, 30_000);

it("writes most Steps of a large statement together although one waits for a lock", async () => {
  const { schema, store } = await openPatientStore();
  await store.openStep(stepIntent("origin"));
  const commits = await withClient(async (client) => {
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.sessions FOR UPDATE`);
    const first = store.openStep(stepIntent("first"));
    const own = store.openStep(next("origin", "own"));
    const others = names.map((name) => store.openStep(stepIntent(name)));
    await Promise.all([first, ...others]);
    const { rows } = await client.query(
      `SELECT count(DISTINCT xmin::text)::int AS commits FROM ${schema}.steps WHERE id LIKE 'step %'`,
    );
    await client.query("COMMIT");
    expect(await own).toMatchObject({ opened: true });
    return rows[0].commits;
  });
  // Seven share the small statement of the one that waits, and then run alone.
  expect(commits).toBeLessThanOrEqual(7 + Math.ceil((names.length - 7) / 8));
});

it("starts another statement for a Step that comes while one waits long", async () => {
  const { schema, store } = await openPatientStore();
  await withoutLockTimeout(schema);
  await store.openStep(stepIntent("counted", [hold(1_000)]));
  await withClient(async (client) => {
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.budget_counters FOR UPDATE`);
    const waiting = store.openStep(stepIntent("waiting", [hold(1_000)]));
    await untilLocked(schema, 1);
    expect(await store.openStep(stepIntent("other"))).toMatchObject({ opened: true });
    await client.query("COMMIT");
    expect(await waiting).toMatchObject({ opened: true });
  });
});

it.each([1, 2, 3])(
  "opens and settles Steps while others wait long for Sessions that another process has locked: %i",
  async (count) => {
    const { schema, store } = await openPatientStore();
    await withoutLockTimeout(schema);
    const origins = names.slice(0, count);
    await Promise.all(origins.map((name) => store.openStep(stepIntent(name))));
    await withClient(async (client) => {
      await client.query("BEGIN");
      await client.query(`SELECT FROM ${schema}.sessions FOR UPDATE`);
      const waiting: Promise<OpenStepResult>[] = [];
      for (const name of origins) {
        waiting.push(store.openStep(next(name, `next to ${name}`)));
        await untilLocked(schema, waiting.length);
      }
      for (const id of ["one", "another"]) {
        expect(await store.openStep(stepIntent(id))).toMatchObject({ opened: true });
        expect(await store.settleStep(stepSettlement(id))).toMatchObject({ settled: true });
      }
      await client.query("COMMIT");
      for (const one of waiting) expect(await one).toMatchObject({ opened: true });
    });
  },
);

it("delays only the Steps of a Session that another process has locked", async () => {
  const { schema, store } = await openPatientStore();
  await store.openStep(stepIntent("origin"));
  await withClient(async (client) => {
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.sessions FOR UPDATE`);
    const own = store.openStep(next("origin", "own"));
    await Promise.all(names.map((name) => store.openStep(stepIntent(name))));
    expect(await store.steps.get(owner.organizationId, "own")).toBeNull();
    await client.query("COMMIT");
    expect(await own).toMatchObject({ opened: true, sessionId: "session of origin" });
  });
});

it("never deadlocks when two processes continue Sessions in opposite orders (F35)", async () => {
  const { schema, store, failures } = await openPatientStore();
  await withoutLockTimeout(schema);
  const other = await openPatiently(schema);
  const origins = names.slice(0, 16);
  await Promise.all(origins.map((name) => store.openStep(stepIntent(name))));
  // The other process knows the Sessions once it has continued them.
  await Promise.all(origins.map((name) => other.store.openStep(next(name, `${name} again`))));
  const openings = await withClient(async (client) => {
    await client.query("BEGIN");
    await client.query(`SELECT FROM ${schema}.sessions WHERE id = 'session of step 8' FOR UPDATE`);
    const waiting = [
      ...origins.map((name) => store.openStep(next(name, `${name} by one`))),
      ...origins.toReversed().map((name) => other.store.openStep(next(name, `${name} by other`))),
    ];
    await untilLocked(schema, 2);
    await client.query("COMMIT");
    return Promise.all(waiting);
  });
  expect(openings.every(({ opened }) => opened)).toBe(true);
  expect([...failures, ...other.failures]).toEqual([]);
});
