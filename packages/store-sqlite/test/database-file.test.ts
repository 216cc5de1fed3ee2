import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Store } from "@tollgate/core/store";
import { createTestGateway } from "@tollgate/testing";
import { expect, it, onTestFinished, vi } from "vitest";
import {
  insertKey,
  leafOf,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { type SqliteClient, sqliteStore } from "../src/index.ts";
import { temporaryFile } from "./temporary-folder.ts";

async function openStore(filename: string): Promise<Store> {
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await store.migrate();
  return store;
}

async function fillFile(filename: string): Promise<void> {
  const store = sqliteStore({ filename });
  await store.migrate();
  await insertKey(store);
  await store.openStep(stepIntent("first"));
  await store.close();
}

function openClient(filename: string, options = {}): DatabaseSync {
  const client = new DatabaseSync(filename, options);
  onTestFinished(() => {
    if (client.isOpen) client.close();
  });
  return client;
}

it("keeps all data when it is closed and opened again", async () => {
  const filename = temporaryFile();
  await fillFile(filename);
  const store = await openStore(filename);
  expect(await store.steps.get("acme", "first")).toMatchObject({ id: "first", outcome: null });
  await store.settleStep(stepSettlement("first"));
  expect((await store.evidence.list({ organizationId: "acme" }, page)).data).toHaveLength(3);
});

const page = { cursor: null, limit: 10 };

it("uses pages of 2 KB and a write-ahead log that every commit flushes", async () => {
  const filename = temporaryFile();
  const client = openClient(filename);
  await sqliteStore({ client }).migrate();
  const pragma = (name: string): unknown =>
    Object.values(client.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  expect(pragma("page_size")).toBe(2_048);
  expect(pragma("journal_mode")).toBe("wal");
  expect(pragma("synchronous")).toBe(2);
  expect(pragma("busy_timeout")).toBe(0);
});

it("does not close a database it did not open", async () => {
  const client = openClient(temporaryFile());
  const store = sqliteStore({ client });
  await store.migrate();
  await store.close();
  expect(client.isOpen).toBe(true);
});

it("rejects calls after closing, and can be closed twice", async () => {
  const store = await openStore(temporaryFile());
  await store.close();
  await store.close();
  await expect(store.openStep(stepIntent("late"))).rejects.toThrow("the store is closed");
  await expect(store.steps.get("acme", "late")).rejects.toThrow("the store is closed");
});

it("lets only the owner read files it creates, and keeps the mode of an existing file (H12)", async () => {
  const filename = temporaryFile();
  const store = await openStore(filename);
  await insertKey(store);
  const modes = ["", "-wal", "-shm"].map((end) => statSync(filename + end).mode & 0o777);
  expect(modes).toEqual([0o600, 0o600, 0o600]);

  const existing = temporaryFile();
  closeSync(openSync(existing, "w", 0o640));
  await openStore(existing);
  expect(statSync(existing).mode & 0o777).toBe(0o640);
});

it("leaves no erased content in the database, its log or its index (S42, H13)", async () => {
  const filename = temporaryFile();
  const store = await openStore(filename);
  await insertKey(store);
  const canary = "canary-".repeat(10);
  // Content of several pages: the pages it frees keep it unless they are overwritten.
  await store.openStep(stepIntent("first", [], canary.repeat(100)));
  await store.settleStep(stepSettlement("first"));
  const holding = () =>
    ["", "-wal", "-shm"].filter((end) => readFileSync(filename + end).includes(canary));
  expect(holding()).not.toEqual([]);
  const leaf = () => leafOf("transcripts.erased", "none");
  const at = Date.now() + 1_000_000_000_000;
  expect((await store.sessions.sweep({ from: "", at, keep: 0, limit: 100, leaf })).removed).toBe(1);
  await vi.waitFor(() => expect(holding()).toEqual([]), { timeout: 5_000, interval: 100 });
});

it("finishes queued writes before it closes", async () => {
  const filename = temporaryFile();
  const store = await openStore(filename);
  await insertKey(store);
  const opening = store.openStep(stepIntent("queued"));
  await store.close();
  expect(await opening).toMatchObject({ opened: true });
});

it("asks for migrate() if the file has no schema", async () => {
  const store = sqliteStore({ filename: temporaryFile() });
  onTestFinished(() => store.close());
  await expect(store.budgets.version()).rejects.toThrow("call migrate() first");
});

it("rejects the schema of a newer release", async () => {
  const filename = temporaryFile();
  await fillFile(filename);
  const client = openClient(filename);
  client.exec("UPDATE tollgate_schema SET version = 99");
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await expect(store.migrate()).rejects.toThrow("schema version 99 of a newer release");
  await expect(store.openStep(stepIntent("second"))).rejects.toThrow("newer release");
});

it("rejects a file that is not a database, and leaves it unchanged", async () => {
  const filename = temporaryFile();
  const file = openSync(filename, "w");
  writeSync(file, "this is a text and no database, whatever its name says".repeat(20));
  closeSync(file);
  const size = statSync(filename).size;
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await expect(store.migrate()).rejects.toThrow(
    `SQLite store: can't open ${filename}: file is not a database`,
  );
  expect(statSync(filename).size).toBe(size);
});

it("names the file if SQLite can't open its write-ahead log", async () => {
  const filename = temporaryFile();
  await fillFile(filename);
  mkdirSync(`${filename}-wal`);
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await expect(store.migrate()).rejects.toThrow(`SQLite store: can't open ${filename}`);
});

it("rejects on a corrupt page and keeps running (F32)", async () => {
  const filename = temporaryFile();
  await fillFile(filename);
  const file = openSync(filename, "r+");
  const size = statSync(filename).size;
  // Keeps the first page with the schema, so the file still opens.
  writeSync(file, Buffer.alloc(size - 8_192, 0xff), 0, size - 8_192, 8_192);
  closeSync(file);
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await expect(store.openStep(stepIntent("second"))).rejects.toThrow("malformed");
  await expect(store.openStep(stepIntent("third"))).rejects.toThrow("malformed");
});

it("finds the Steps of dead processes although one of them is damaged (F54)", async () => {
  const client = openClient(temporaryFile());
  const store = sqliteStore({ client });
  await store.migrate();
  await insertKey(store);
  for (const id of ["damaged", "whole"]) await store.openStep(stepIntent(id));
  client.exec(`UPDATE steps SET attempt_start = '{"a' WHERE id = 'damaged'`);
  const lapsed = (after: number | null, limit: number) =>
    store.lapsedSteps({ at: 0, clock: "gateway", after, limit });
  const damaged = [expect.any(SyntaxError)];
  const steps = [{ step: { id: "whole" } }];
  expect(await lapsed(null, 100)).toMatchObject({ steps, damaged, next: null });
  const first = await lapsed(null, 1);
  expect(first).toMatchObject({ steps: [], damaged });
  expect(await lapsed(first.next, 1)).toMatchObject({ steps, damaged: [] });
});

const aPage = Array.from({ length: 100 }, (_, at) => `step ${at}`);

it.each([
  [
    "one of them is damaged",
    [`UPDATE steps SET attempt_start = '{"a' WHERE id = 'step 0'`],
    ["step 0"],
  ],
  [
    "a page of them can't be settled",
    aPage.map((id) => `DELETE FROM sessions WHERE id = 'session of ${id}'`),
    aPage,
  ],
])("recovers all other Steps at once although %s (F54)", async (_, damages, left) => {
  const client = openClient(temporaryFile());
  const store = sqliteStore({ client });
  await store.migrate();
  await insertKey(store);
  const ids = Array.from({ length: 250 }, (_, at) => `step ${at}`);
  await Promise.all(ids.map((id) => store.openStep(stepIntent(id))));
  for (const damage of damages) client.exec(damage);
  // The first store remembers its Sessions.
  const reopened = sqliteStore({ client });
  const { gateway } = await createTestGateway({ store: reopened });
  onTestFinished(() => gateway.close());
  await expect(gateway.recover()).rejects.toThrow("The store failed");
  const text = "SELECT id FROM steps WHERE outcome = 'open' ORDER BY sequence";
  const open = client.prepare(text).all();
  expect(open.map(({ id }) => id)).toEqual(left);
});

it("stops admitting when the open file is removed, and does not create it again (F32)", async () => {
  const filename = temporaryFile();
  const store = await openStore(filename);
  await insertKey(store);
  rmSync(filename);
  await expect(store.openStep(stepIntent("lost"))).rejects.toThrow("was removed");
  expect(statSync(filename, { throwIfNoEntry: false })).toBeUndefined();
});

it("stops admitting when the file is replaced (F32)", async () => {
  const filename = temporaryFile();
  const other = temporaryFile();
  const store = await openStore(filename);
  await insertKey(store);
  await fillFile(other);
  renameSync(other, filename);
  await expect(store.openStep(stepIntent("lost"))).rejects.toThrow("was replaced");
});

it("rejects writes to a read-only database, and still reads (F30)", async () => {
  const filename = temporaryFile();
  await fillFile(filename);
  const store = sqliteStore({ client: openClient(filename, { readOnly: true }) });
  await store.migrate();
  expect(await store.steps.get("acme", "first")).not.toBeNull();
  await expect(store.openStep(stepIntent("second"))).rejects.toThrow("readonly");
});

it("rejects only writes that don't fit on a full disk (F29)", async () => {
  const client = openClient(temporaryFile());
  const store = sqliteStore({ client });
  await store.migrate();
  await insertKey(store);
  const pages = Object.values(client.prepare("PRAGMA page_count").get() ?? {})[0];
  client.exec(`PRAGMA max_page_count = ${Number(pages) + 4}`);
  const large = stepIntent("large", [], "x".repeat(1_000_000));
  const results = await Promise.allSettled([
    store.openStep(stepIntent("small")),
    store.openStep(large),
    store.openStep(stepIntent("little")),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(results[1]).toMatchObject({ reason: { message: expect.stringContaining("full") } });
  expect(await store.steps.get("acme", "large")).toBeNull();
  expect(await store.steps.get("acme", "little")).not.toBeNull();
  client.exec("PRAGMA max_page_count = 1000000");
  expect(await store.openStep(large)).toMatchObject({ opened: true });
});

it("reports why it can't migrate or list although SQLite has rolled back already (F29, F30)", async () => {
  const real = openClient(temporaryFile());
  const broken = { statement: "CREATE VIEW turns" };
  /** Fails as SQLite does on a full disk or a read error. */
  const orFail = (sql: string): string => {
    if (!sql.includes(broken.statement)) return sql;
    real.exec("ROLLBACK");
    throw new Error("the disk failed");
  };
  const store = sqliteStore({
    client: {
      exec: (sql) => real.exec(orFail(sql)),
      prepare: (sql) => real.prepare(orFail(sql)),
      close() {},
    },
  });
  await expect(store.migrate()).rejects.toThrow("the disk failed");
  broken.statement = "FROM decisions";
  await store.migrate();
  const list = () => store.decisions.list({ organizationId: "acme" }, page);
  await expect(list()).rejects.toThrow("the disk failed");
  broken.statement = "no such statement";
  expect((await list()).data).toEqual([]);
});

it.each(["3.51.2", "3.40.1", "2.99.99"])("rejects SQLite %s", async (version) => {
  await expect(sqliteStore({ client: clientOf(version) }).migrate()).rejects.toThrow(
    `SQLite ${version} is older than 3.51.3`,
  );
});

it.each(["3.51.3", "3.52.0", "4.0.0"])("accepts SQLite %s", async (version) => {
  await sqliteStore({ client: clientOf(version) }).migrate();
});

/** A database that reports another SQLite version. */
function clientOf(version: string): SqliteClient {
  const client = openClient(temporaryFile());
  return {
    exec: (sql) => client.exec(sql),
    prepare: (sql) =>
      client.prepare(sql.includes("sqlite_version()") ? `SELECT '${version}' AS version` : sql),
    close: () => client.close(),
  };
}

it("isolates the failure of one write from the others of its group", async () => {
  const store = await openStore(temporaryFile());
  await insertKey(store);
  const results = await Promise.allSettled([
    store.openStep(stepIntent("one")),
    store.settleStep(stepSettlement("unknown")),
    store.openStep(stepIntent("two")),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(results[1]).toMatchObject({ reason: { code: "step_not_found" } });
  expect(
    (await store.steps.list({ organizationId: owner.organizationId }, page)).data,
  ).toHaveLength(2);
});

it("commits the writes of a failed group one by one, in turns between which other work runs", async () => {
  const client = openClient(temporaryFile());
  /** The number of commits in each turn of the event loop. */
  const turns = [0];
  const exec = (sql: string): void => {
    if (sql === "COMMIT") turns.push((turns.pop() ?? 0) + 1);
    client.exec(sql);
  };
  const store = sqliteStore({
    client: { exec, prepare: (sql) => client.prepare(sql), close() {} },
  });
  await store.migrate();
  await insertKey(store);
  turns.length = 0;
  let isOver = false;
  const next = (): void => {
    if (isOver) return;
    turns.push(0);
    setImmediate(next);
  };
  next();
  const names = Array.from({ length: 20 }, (_, at) => `step ${at}`);
  const results = await Promise.allSettled([
    ...names.map((name) => store.openStep(stepIntent(name))),
    store.settleStep(stepSettlement("unknown")),
  ]);
  isOver = true;
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(20);
  expect(turns.filter((commits) => commits > 0)).toEqual(names.map(() => 1));
});
