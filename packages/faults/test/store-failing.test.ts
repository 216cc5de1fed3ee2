import { closeSync, existsSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { createGateway } from "@tollgate/core";
import { openaiCompatible } from "@tollgate/provider-openai";
import { type SqliteClient, sqliteStore } from "@tollgate/store-sqlite";
import { faultyStore } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import { chat, type Product } from "../src/product.ts";
import { readAnswer, readStream } from "../src/read-answer.ts";
import { chunked, done, finish, lastChunk, streamHead, text } from "../src/upstream-bytes.ts";
import { codeOf, expectFailedStream, expectWhole, good, startProduct } from "./fixture.ts";

/** A product whose database connection the test can use too. */
async function onConnection(
  script: Parameters<typeof startProduct>[0] = good,
): Promise<{ readonly product: Product; readonly database: DatabaseSync }> {
  let database: DatabaseSync | undefined;
  const product = await startProduct(script, {
    store(filename) {
      database = new DatabaseSync(filename);
      return sqliteStore({ client: database });
    },
  });
  if (database === undefined) throw new Error("no database is open");
  const opened = database;
  onTestFinished(() => opened.close());
  return { product, database };
}

/** Leaves the database no page to grow into. */
function fill(database: DatabaseSync): void {
  const pages = Object.values(database.prepare("PRAGMA page_count").get() ?? {})[0];
  database.exec(`PRAGMA max_page_count = ${pages}`);
}

const empty = (database: DatabaseSync): void => database.exec("PRAGMA max_page_count = 1000000");

/** Refused because the record can't be written: nothing was sent, for plain and streamed requests alike. */
async function expectNothingSent(product: Product, fields: object = {}): Promise<void> {
  const asked = product.upstream.requests.length;
  for (const stream of [true, false]) {
    const answer = await product.ask({ ...fields, stream });
    expect(answer.status).toBe(503);
    expect(codeOf(answer)).toBe("evidence_unavailable");
    expect(answer.headers["x-should-retry"]).toBe("true");
  }
  expect(product.upstream.requests).toHaveLength(asked);
}

const long = { messages: [{ role: "user", content: "x".repeat(200_000) }] };

it("F29 a full disk sends nothing upstream, and service resumes once there is room", async () => {
  const { product, database } = await onConnection();
  expect((await product.ask()).status).toBe(200);
  fill(database);
  await expectNothingSent(product, long);
  empty(database);
  await expectWhole(product);
});

it("F29 a disk that is full at the settlement ends the stream with an error, and recovery releases the hold", async () => {
  const { product, database } = await onConnection(async ({ send }) => {
    await send(streamHead + chunked(text("x".repeat(200_000))));
    await full.promise;
    await send(chunked(finish + done) + lastChunk);
  });
  const full = Promise.withResolvers<void>();
  const client = await product.post({ stream: true });
  await client.until("xxxx");
  fill(database);
  full.resolve();
  const answer = client.ended();
  await pushUntil(product, answer);
  expectFailedStream(readAnswer(await answer), "evidence_unavailable");
  expect((await product.steps())[0]?.outcome).toBeNull();
  expect(await held(product)).toBeGreaterThan(0);

  empty(database);
  product.clock.push(5_000);
  await product.settled(1);
  expect(await product.steps()).toMatchObject([{ outcome: "interrupted" }]);
  expect(await held(product)).toBe(0);
  await expectWhole(product);
});

/** The settlement is retried a few times; each pause is skipped. */
async function pushUntil({ clock }: Product, answer: Promise<unknown>): Promise<void> {
  let isAnswered = false;
  void answer.finally(() => {
    isAnswered = true;
  });
  while (!isAnswered) {
    clock.push(100);
    await new Promise(setImmediate);
  }
}

async function held({ store }: Product): Promise<number | undefined> {
  const paging = { cursor: null, limit: 1 };
  return (await store.budgets.counters({ budgetId: "whole" }, paging)).data[0]?.held;
}

it("F30 a read-only database sends nothing upstream, and reading continues", async () => {
  const { product, database } = await onConnection();
  expect((await product.ask()).status).toBe(200);
  database.exec("PRAGMA query_only = 1");
  await expectNothingSent(product);
  expect(await product.steps()).toHaveLength(1);
  product.clock.push(5_000);
  while (!product.events.some(({ type }) => type === "gateway.degraded"))
    await new Promise(setImmediate);
  database.exec("PRAGMA query_only = 0");
  await expectWhole(product);
});

it("F30 a gateway that starts on a database it cannot write sends nothing", async () => {
  const product = await startProduct(good);
  const database = new DatabaseSync(product.filename, { readOnly: true });
  onTestFinished(() => database.close());
  const reader = createGateway({
    store: sqliteStore({ client: database }),
    providers: { up: openaiCompatible({ baseURL: `${product.upstream.url}/v1`, apiKey: null }) },
  });
  const answer = await reader.fetch(
    new Request("http://in-process/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${product.secret}` },
      body: JSON.stringify(chat()),
    }),
  );
  expect(answer.status).toBe(503);
  expect(product.upstream.requests).toHaveLength(0);
  await reader.close();
  await expectWhole(product);
});

it("F31 a request waits for another process's lock without blocking the event loop", async () => {
  const product = await startProduct(good);
  const other = new DatabaseSync(product.filename);
  other.exec("BEGIN IMMEDIATE");
  const answer = product.ask();
  // If the loop were blocked, nothing here could release the lock.
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect(product.upstream.requests).toHaveLength(0);
  other.exec("COMMIT");
  other.close();
  expect((await answer).status).toBe(200);
  await expectWhole(product);
});

it("F31 a lock that is not released answers 503 after two seconds", async () => {
  const product = await startProduct(good);
  const other = new DatabaseSync(product.filename);
  other.exec("BEGIN IMMEDIATE");
  const answer = await product.ask();
  expect(answer.status).toBe(503);
  expect(codeOf(answer)).toBe("evidence_unavailable");
  expect(product.upstream.requests).toHaveLength(0);
  other.exec("COMMIT");
  other.close();
  await expectWhole(product);
});

it("F32 a file that was removed stops admission and is not created again", async () => {
  const product = await startProduct(good);
  expect((await product.ask()).status).toBe(200);
  rmSync(product.filename);
  await expectNothingSent(product);
  expect(existsSync(product.filename)).toBe(false);
});

it("F32 a replaced file stops admission, and neither file is written", async () => {
  const [product, other] = [await startProduct(good), await startProduct(good)];
  expect((await product.ask()).status).toBe(200);
  const before = await other.steps();
  renameSync(other.filename, product.filename);
  await expectNothingSent(product);
  expect(await other.steps()).toEqual(before);
});

it("F32 a file that is corrupt stops admission", async () => {
  const { product, database } = await onConnection();
  expect((await product.ask()).status).toBe(200);
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  database.exec("PRAGMA shrink_memory");
  const { size } = statSync(product.filename);
  const file = openSync(product.filename, "r+");
  // The first page names the tables, so only the tables' pages are overwritten.
  writeSync(file, Buffer.alloc(size - 16_384, 0xff), 0, size - 16_384, 16_384);
  closeSync(file);
  await expectNothingSent(product);
});

it("F32 a SQLite library that is too old is rejected at the start", async () => {
  const client = new DatabaseSync(":memory:");
  onTestFinished(() => client.close());
  const old: SqliteClient = {
    exec: (sql) => client.exec(sql),
    prepare: (sql) =>
      client.prepare(sql.includes("sqlite_version()") ? "SELECT '3.45.1' AS version" : sql),
    close: () => {},
  };
  await expect(
    startProduct(good, { store: () => sqliteStore({ client: old }) }),
  ).rejects.toMatchObject({
    code: "evidence_unavailable",
    cause: { message: expect.stringContaining("older than 3.51.3") },
  });
});

it("F27 a settlement with an unknown commit is repeated, and counts once", async () => {
  for (const when of ["before", "after"] as const) {
    const product = await startProduct(good, {
      wrap: (store) => faultyStore(store, { on: { verb: "settleStep", nth: 1, when } }).store,
    });
    expect(readStream(await product.ask({ stream: true }))).toMatchObject({
      finishReason: "stop",
      error: null,
      done: true,
    });
    expect(await product.steps()).toMatchObject([{ outcome: "completed" }]);
    await expectWhole(product);
  }
});

it("F27 an opening with an unknown commit sends nothing, and its hold is released", async () => {
  const product = await startProduct(good, {
    wrap: (store) => faultyStore(store, { on: { verb: "openStep", nth: 1, when: "after" } }).store,
  });
  await expectOneRefused(product);
  expect(await held(product)).toBeGreaterThan(0);
  product.clock.push(5_000);
  await product.settled(1);
  expect(await product.steps()).toMatchObject([{ outcome: "interrupted" }]);
  await expectWhole(product);
});

async function expectOneRefused(product: Product): Promise<void> {
  expect((await product.ask()).status).toBe(503);
  expect(product.upstream.requests).toHaveLength(0);
}
