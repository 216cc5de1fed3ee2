import { createGateway } from "@tollgate/core";
import { postgresStore } from "@tollgate/store-postgres";
import {
  chatWith,
  checkDump,
  checkQuiet,
  countingIds,
  createTestGateway,
  dumpStore,
  manualClock,
  type TestGateway,
  type TestGatewayOptions,
} from "@tollgate/testing";
import pg from "pg";
import { expect, inject, it, onTestFinished, vi } from "vitest";
import { receive, referenceIn, requestOf, requestWithoutBody } from "../src/histories/ask.ts";
import { directly, freshSchema, proxied } from "./postgres-fixture.ts";

vi.setConfig({ testTimeout: 30_000 });

let series = 0;

/** A gateway with its own connection pool, ids and provider. */
async function gatewayOn(
  schema: string,
  options: TestGatewayOptions = {},
  url = inject("postgresUrl"),
): Promise<TestGateway> {
  const ids = countingIds(++series);
  const store = postgresStore({ url }, { schema });
  const product = await createTestGateway({ ids, store, maintenance: false, ...options });
  onTestFinished(() => product.gateway.close());
  return product;
}

async function problems({ store, gateway, clock }: TestGateway): Promise<readonly string[]> {
  const query = { organizations: ["organization-1"], at: clock.now(), activity: gateway.activity };
  const dump = await dumpStore(store, query);
  return [...checkDump(dump), ...checkQuiet(dump)];
}

const user = (content: string) => ({ role: "user", content });
const assistant = { role: "assistant", content: "OK" };

/** Two gateways on one schema, and a Session that the first gateway's key started. */
async function twoOnOneSession() {
  const schema = freshSchema();
  const [one, other] = [await gatewayOn(schema), await gatewayOn(schema)];
  const begun = await one.gateway.fetch(one.chat({ messages: [user("A")] }));
  const told = referenceIn(await receive(begun));
  if (told === null) throw new Error("the Session did not begin");
  const holds = [one.provider.hold(), other.provider.hold()];
  const release = (): void => {
    for (const hold of holds) hold.release();
  };
  return { one, other, sessionId: told.sessionId, release, schema };
}

/** Keeps a Session locked until this many statements wait for it, so none of them sees another's change early. */
async function lockUntil(
  waiting: number,
  schema: string,
  sessionId: string,
): Promise<() => Promise<void>> {
  const client = new pg.Client(inject("postgresUrl"));
  onTestFinished(() => client.end());
  await client.connect();
  await client.query("BEGIN");
  await client.query(`SELECT FROM ${schema}.sessions WHERE id = $1 FOR UPDATE`, [sessionId]);
  const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
  const pid: unknown = rows[0]?.pid;
  // The first process waits for the lock, and each later one for the previous one.
  const asked = `WITH first AS (SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))
    SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))
      OR pg_blocking_pids(pid) && ARRAY (SELECT pid FROM first)`;
  const watcher = new pg.Client(inject("postgresUrl"));
  onTestFinished(() => watcher.end());
  await watcher.connect();
  return async () => {
    while ((await watcher.query(asked, [pid])).rowCount !== waiting);
    await client.query("COMMIT");
  };
}

it("F41 two gateways on one named Session keep every Step and a complete history", async () => {
  const { one, other, sessionId, release, schema } = await twoOnOneSession();
  const ask = async (at: number) => {
    const { gateway } = at % 2 === 0 ? one : other;
    const messages = [user("A"), assistant, user(`B${at}`)];
    return receive(await gateway.fetch(one.chat({ messages, session_id: sessionId })));
  };
  const unlocked = await lockUntil(2, schema, sessionId);
  const answers = [ask(0), ask(1)];
  await unlocked();
  for (let at = 2; at < 12; at++) answers.push(ask(at));
  while (one.provider.calls.length + other.provider.calls.length < 13)
    await new Promise(setImmediate);
  release();
  const told = (await Promise.all(answers)).map(referenceIn);
  const sessions = told.map((answer) => answer?.sessionId);
  // The first one continues the Session; the others' histories have diverged from it, so they branch.
  expect(sessions.filter((id) => id === sessionId)).toHaveLength(1);
  expect(new Set(sessions).size).toBe(12);
  const organizationId = "organization-1";
  const { data: steps } = await one.gateway.steps.list({ organizationId });
  expect(steps).toHaveLength(13);
  const { data: all } = await one.gateway.sessions.list({ organizationId });
  expect(all.filter((session) => session.branchedFromSessionId === sessionId)).toHaveLength(11);
  expect(await problems(one)).toEqual([]);
});

it("F42 the same request without ids, sent to two gateways at once, continues one Session", async () => {
  const { one, other, sessionId, release } = await twoOnOneSession();
  const messages = [user("A"), assistant, user("B")];
  const answers = [one, other].map(async ({ gateway }) =>
    referenceIn(await receive(await gateway.fetch(one.chat({ messages })))),
  );
  while (one.provider.calls.length + other.provider.calls.length < 3)
    await new Promise(setImmediate);
  release();
  expect((await Promise.all(answers)).map((told) => told?.sessionId)).toEqual([
    sessionId,
    sessionId,
  ]);
  const { data } = await one.gateway.sessions.list({ organizationId: "organization-1" });
  expect(data).toHaveLength(1);
  expect(await problems(one)).toEqual([]);
});

it("F39 clocks an hour apart: each gateway counts its own period, and nothing is lost or overspent", async () => {
  const schema = freshSchema();
  const budgets = [{ id: "hourly", limit: { requests: 2 }, period: "hour" }] as const;
  const late = manualClock("2026-03-29T01:30:00.000Z");
  const early = manualClock("2026-03-29T00:30:00.000Z");
  const one = await gatewayOn(schema, { budgets, clock: early });
  const other = await gatewayOn(schema, { budgets, clock: late });
  const statuses: number[] = [];
  for (const { gateway } of [one, other, one, other, one, other])
    statuses.push((await receive(await gateway.fetch(one.chat()))).status);
  expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
  // Set back by an hour in the middle of an answer: durations use the monotonic clock.
  const hold = other.provider.hold();
  late.setWall("2026-03-29T03:10:00.000Z");
  const answer = other.gateway.fetch(one.chat());
  await hold.reached();
  late.setWall("2026-03-29T02:10:00.000Z");
  hold.release();
  expect((await receive(await answer)).status).toBe(200);
  const { data } = await one.gateway.steps.list({ organizationId: "organization-1" });
  for (const { attempts } of data)
    for (const { durationMs } of attempts) expect(durationMs).toBeGreaterThanOrEqual(0);
  expect(await problems(other)).toEqual([]);
});

const hour = 3_600_000;

/** A response that expires within the hour, and one that continues it and expires later. */
async function expiringChain(
  product: TestGateway,
): Promise<{ readonly gone: string; readonly lives: string }> {
  const respond = async (body: object) => {
    const request = requestOf({
      secret: product.key.secret,
      path: "responses",
      body: { model: "test/tollgate/scripted", ...body },
    });
    const told = referenceIn(await receive(await product.gateway.fetch(request)));
    if (told === null) throw new Error("no response was stored");
    return told.id;
  };
  const gone = await respond({ input: "A" });
  product.clock.setWall(product.clock.now() + hour);
  const lives = await respond({ input: "B", previous_response_id: gone });
  product.clock.setWall(product.clock.now() + hour);
  return { gone, lives };
}

it("F44 readers get complete answers or none wherever a sweep stops", async () => {
  const schema = freshSchema();
  const clock = manualClock();
  const retention = { responses: "90m" } as const;
  const { url, proxy } = await proxied();
  const sweeping = await gatewayOn(schema, { clock, retention }, url);
  const reading = await gatewayOn(schema, { clock, retention });
  const { secret } = reading.key;
  const ask = async (method: string, path: string) =>
    receive(await reading.gateway.fetch(requestWithoutBody(method, path, secret)));
  let nth = 0;
  do {
    const { gone, lives } = await expiringChain(reading);
    proxy.atPiece(++nth, "hold");
    const swept = sweeping.gateway.sweep();
    await Promise.race([swept, proxy.reached()]);
    const continued = {
      path: "responses",
      secret,
      body: { model: "test/tollgate/scripted", input: "C", previous_response_id: lives },
    };
    const readers = Promise.all([
      ask("GET", `responses/${lives}`),
      ask("GET", `responses/${gone}`),
      reading.gateway.fetch(requestOf(continued)).then(receive),
    ]);
    // A reader may wait for rows that the sweep has locked; the sweep continues before the wait times out.
    await Promise.race([readers, new Promise((resolve) => setTimeout(resolve, 50))]);
    proxy.release();
    const [whole, none, continuation] = await readers;
    expect(referenceIn(whole)?.id).toBe(lives);
    expect(none.status).toBe(404);
    expect(continuation.status).toBe(200);
    const { messages } = reading.provider.calls.at(-1)?.request ?? { messages: [] };
    expect(messages.map(({ content }) => content)).toEqual(["A", "OK", "B", "OK", "C"]);
    await swept;
    // A response deleted meanwhile is gone, and its continuation is kept.
    expect((await ask("DELETE", `responses/${lives}`)).status).toBe(200);
    expect((await ask("GET", `responses/${lives}`)).status).toBe(404);
    const next = referenceIn(continuation);
    expect((await ask("GET", `responses/${next?.id}`)).status).toBe(200);
  } while (proxy.pieces() >= nth);
  expect(nth).toBeGreaterThan(3);
  expect(await problems(reading)).toEqual([]);
});

it("F45 gateways that start at once on an empty schema all serve, with one shared history", async () => {
  for (let round = 0; round < 5; round++) {
    const schema = freshSchema();
    const gateways = await Promise.all([1, 2, 3, 4].map(() => gatewayOn(schema)));
    const [first] = gateways;
    if (first === undefined) throw new Error("no gateway is open");
    for (const { gateway } of gateways)
      expect((await receive(await gateway.fetch(first.chat()))).status).toBe(200);
    expect(await problems(first)).toEqual([]);
  }
});

it("F45 a release older than the schema sends nothing and reports why, and running gateways continue", async () => {
  const schema = freshSchema();
  const url = inject("postgresUrl");
  const running = await gatewayOn(schema);
  await directly(url, `UPDATE ${schema}.tollgate_schema SET version = version + 1`);
  const store = postgresStore({ url }, { schema });
  const { provider, chat } = running;
  const older = createGateway({ store, providers: { test: provider } });
  onTestFinished(() => older.close());
  await expect(older.ready()).rejects.toMatchObject({
    code: "evidence_unavailable",
    cause: { message: expect.stringContaining("made by a newer release") },
  });
  const answer = await receive(await older.fetch(chat()));
  expect(answer.status).toBe(503);
  expect(provider.calls).toHaveLength(0);
  expect((await receive(await running.gateway.fetch(chatWith(running.key.secret)()))).status).toBe(
    200,
  );
  expect(await problems(running)).toEqual([]);
});
