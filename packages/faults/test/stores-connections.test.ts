import type { PostgresClient, PostgresPool } from "@tollgate/store-postgres";
import { startPostgres } from "@tollgate/testing/postgres";
import { expect, inject, it, onTestFinished, vi } from "vitest";
import type { Product } from "../src/product.ts";
import { readAnswer, readStream } from "../src/read-answer.ts";
import {
  asksForStream,
  chunked,
  done,
  finish,
  goodAnswer,
  lastChunk,
  streamHead,
  text,
} from "../src/upstream-bytes.ts";
import { codeOf, expectWhole, good, type startProduct } from "./fixture.ts";
import { directly, productByProxy, productOn, productOnPool } from "./postgres-fixture.ts";

vi.setConfig({ testTimeout: 30_000 });

const whole = { finishReason: "stop", error: null, done: true };

/** An upstream that stops in the middle of a stream until it is released. */
function stopping() {
  const goes = Promise.withResolvers<void>();
  const script: Parameters<typeof startProduct>[0] = async ({ send, body }) => {
    if (!asksForStream(body)) return send(goodAnswer(body));
    await send(streamHead + chunked(text("Half of it")));
    await goes.promise;
    await send(chunked(finish + done) + lastChunk);
  };
  return { script, goOn: () => goes.resolve() };
}

/** Expects 503 within this many milliseconds, with nothing sent. */
async function expectUnavailable(product: Product, within: number): Promise<void> {
  const asked = product.upstream.requests.length;
  const began = performance.now();
  const answer = await product.ask();
  expect(performance.now() - began).toBeLessThan(within);
  expect(answer.status).toBe(503);
  expect(codeOf(answer)).toBe("evidence_unavailable");
  expect(answer.headers["x-should-retry"]).toBe("true");
  expect(product.upstream.requests).toHaveLength(asked);
}

it.each(["immediate", "fast"] as const)(
  "F33 a server restarted (%s) in the middle of a stream loses nothing acknowledged",
  async (mode) => {
    const server = await startPostgres({ fsync: true });
    onTestFinished(() => server.stop());
    const { script, goOn } = stopping();
    const product = await productOn(server.url, script);
    expect((await product.ask()).status).toBe(200);
    const client = await product.post({ stream: true });
    await client.until("Half of it");
    await server.restart(mode);
    goOn();
    expect(readStream(readAnswer(await client.ended()))).toMatchObject(whole);
    const outcomes = (await product.steps()).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["completed", "completed"]);
    await expectWhole(product);
  },
);

it("F33 connections that the server closes are replaced, between and during requests", async () => {
  const url = inject("postgresUrl");
  const name = `faults_${process.pid}`;
  const product = await productOn(`${url}?application_name=${name}`, good);
  for (let time = 0; time < 20; time++) {
    const asked = product.ask({ stream: time % 2 === 0 });
    await directly(
      url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${name}'`,
    );
    expect((await asked).status).toBe(200);
  }
  await expectWhole(product);
});

it("F33 a server that turns read-only answers 503 until it accepts writes again", async () => {
  const url = inject("postgresUrl");
  const name = `faults_read_only_${process.pid}`;
  await directly(url, `CREATE DATABASE ${name}`);
  const address = new URL(url);
  address.pathname = name;
  const product = await productOn(address.href, good);
  const turn = (to: "on" | "off") =>
    directly(
      url,
      `ALTER DATABASE ${name} SET default_transaction_read_only = ${to}`,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
    );
  await turn("on");
  await expectUnavailable(product, 5_000);
  await turn("off");
  await expectWhole(product);
});

it.each(["cut before", "cut after"] as const)(
  "F34 a connection %s any message to the server: each Step exists once, and only settled answers are complete",
  async (does) => {
    const { product, proxy } = await productByProxy(good);
    let shown = 0;
    let nth = 0;
    do {
      proxy.atPiece(++nth, does);
      const answer = await product.ask({ stream: nth % 2 === 0 });
      expect([200, 503]).toContain(answer.status);
      if (answer.status === 200) shown++;
    } while (proxy.pieces() >= nth);
    // It took more than one message: at least the opening and the settlement.
    expect(nth).toBeGreaterThan(2);
    const completed = (await product.steps()).filter(({ outcome }) => outcome === "completed");
    expect(completed).toHaveLength(shown);
    expect(product.upstream.requests).toHaveLength(shown);
    await expectWhole(product);
  },
);

/** A pool whose next statements fail as the server would fail them. */
function failing(
  pool: PostgresPool,
  state: string,
): { pool: PostgresPool; fail(times: number): void } {
  let left = 0;
  const around = (client: PostgresClient): PostgresClient => ({
    on: (event, listener) => client.on(event, listener),
    off: (event, listener) => client.off(event, listener),
    release: (destroy) => client.release(destroy),
    query(query, answered) {
      if (left <= 0) return client.query(query, answered);
      left--;
      const failure = Object.assign(new Error("as it fails"), { severity: "ERROR", code: state });
      process.nextTick(answered, failure);
    },
  });
  return {
    fail(times) {
      left = times;
    },
    pool: {
      on: (event, listener) => pool.on(event, listener),
      off: (event, listener) => pool.off(event, listener),
      connect: (taken) => pool.connect((error, client) => taken(error, client && around(client))),
    },
  };
}

it.each(["40001", "40P01", "55P03", "57014", "53300"])(
  "F35 F36 a statement that fails with %s is retried a few times, and then answers 503",
  async (state) => {
    let failer: ReturnType<typeof failing> | undefined;
    const { product } = await productOnPool(good, {
      around(pool) {
        failer = failing(pool, state);
        return failer.pool;
      },
    });
    expect((await product.ask()).status).toBe(200);
    failer?.fail(3);
    expect((await product.ask({ stream: true })).status).toBe(200);
    failer?.fail(Number.POSITIVE_INFINITY);
    await expectUnavailable(product, 5_000);
    failer?.fail(0);
    await expectWhole(product);
  },
);

it("F36 a server that accepts no more connections (53300) answers 503 until it does again", async () => {
  const url = inject("postgresUrl");
  const name = `faults_few_${process.pid}`;
  const [user, database] = [`${name}_user`, `${name}_database`];
  await directly(
    url,
    `CREATE ROLE ${user} LOGIN CONNECTION LIMIT 4`,
    `CREATE DATABASE ${database} OWNER ${user}`,
  );
  const address = new URL(url);
  address.username = user;
  address.pathname = database;
  const product = await productOn(address.href, good);
  // More calls want a connection at once than the server allows: the allowed connections serve them all.
  const answers = await Promise.all(Array.from({ length: 7 }, () => product.ask()));
  expect(answers.map(({ status }) => status)).toEqual(Array(7).fill(200));
  const limit = (to: number) =>
    directly(
      url,
      `ALTER ROLE ${user} CONNECTION LIMIT ${to}`,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${user}'`,
    );
  await limit(0);
  await expectUnavailable(product, 5_000);
  await limit(4);
  expect((await product.ask()).status).toBe(200);
  expect(await product.problems()).toEqual([]);
});

it("F36 streams hold no connection, and a request that waits too long for one gets an error", async () => {
  const { script, goOn } = stopping();
  const { product, pool } = await productOnPool(script, { maxConnections: 1 });
  const clients = await Promise.all([1, 2, 3].map(() => product.post({ stream: true })));
  for (const client of clients) await client.until("Half of it");
  expect((await product.ask()).status).toBe(200);
  const taken = await pool.connect();
  await expectUnavailable(product, 6_000);
  taken.release();
  goOn();
  for (const client of clients)
    expect(readStream(readAnswer(await client.ended()))).toMatchObject(whole);
  expect((await product.ask()).status).toBe(200);
  expect(await product.problems()).toEqual([]);
});

it("F37 an unresponsive server answers 503 within five seconds, and a settlement outlasts it", async () => {
  const { script, goOn } = stopping();
  const { product, proxy } = await productByProxy(script);
  // Several connections are open: statements hang, and so do new connections.
  await Promise.all([1, 2, 3, 4].map(() => product.ask()));
  const client = await product.post({ stream: true });
  await client.until("Half of it");
  proxy.blackHole();
  const refused = expectUnavailable(product, 5_000);
  goOn();
  await refused;
  proxy.heal();
  expect(readStream(readAnswer(await client.ended()))).toMatchObject(whole);
  expect((await product.steps()).map(({ outcome }) => outcome)).toEqual(Array(5).fill("completed"));
  expect((await product.ask()).status).toBe(200);
  expect(await product.problems()).toEqual([]);
});
