import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import {
  hold,
  insertKey,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { sqliteStore } from "../src/index.ts";
import { temporaryFile } from "./temporary-folder.ts";

const clock = "gateway" as const;
const script = fileURLToPath(new URL("store-process.ts", import.meta.url));

/** A process that works on the file, and its output lines. */
function startProcess(...parameters: readonly string[]) {
  const child = spawn(process.execPath, ["--conditions=tollgate-source", script, ...parameters], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  return { child, exited, lines };
}

it.each([3, 17, 40, 77, 120])(
  "keeps everything acknowledged, and nothing partial, when killed after %i answers (F27)",
  async (answers) => {
    const filename = temporaryFile();
    const { child, exited, lines } = startProcess("work", filename);
    const acknowledged: string[] = [];
    for await (const line of lines) {
      acknowledged.push(line);
      if (acknowledged.length === answers) child.kill("SIGKILL");
    }
    await exited;

    const store = sqliteStore({ filename });
    onTestFinished(() => store.close());
    await store.migrate();
    for (const line of acknowledged) {
      const [verb, stepId = ""] = line.split(" ");
      const step = await store.steps.get(owner.organizationId, stepId);
      expect(step, line).not.toBeNull();
      if (verb === "settled") expect(step?.outcome, line).toBe("completed");
    }
    expectWhole(filename);
    const query = { at: 0, clock, after: null, limit: 1_000 } as const;
    for (const { step } of (await store.lapsedSteps(query)).steps)
      await store.settleStep({ ...stepSettlement(step.id), outcome: "interrupted" });
    expectWhole(filename);
    const counters = await store.budgets.counters(
      { budgetId: "budget" },
      { cursor: null, limit: 1 },
    );
    expect(counters.data[0]?.held).toBe(0);
  },
);

/** Every Step has all of its rows, no row is without its Step, and the counters are the sums of their holds. */
function expectWhole(filename: string): void {
  const database = new DatabaseSync(filename);
  const value = (sql: string): unknown => Object.values(database.prepare(sql).get() ?? {})[0];
  const steps = value("SELECT count(*) FROM steps");
  const settled = value("SELECT count(*) FROM steps WHERE outcome <> 'open'");
  expect(value("PRAGMA integrity_check")).toBe("ok");
  expect(value("SELECT count(*) FROM steps WHERE permit IS NOT NULL")).toBe(steps);
  expect(value("SELECT count(*) FROM turns")).toBe(steps);
  expect(value("SELECT count(*) FROM holds")).toBe(steps);
  expect(value("SELECT count(*) FROM leaves WHERE kind = 'step.opened'")).toBe(steps);
  expect(value("SELECT count(*) FROM leaves WHERE kind = 'step.settled'")).toBe(settled);
  expect(value("SELECT count(*) FROM holds WHERE settled IS NOT NULL")).toBe(settled);
  expect(value("SELECT count(*) FROM transcript_parts WHERE kind = 'request'")).toBe(steps);
  expect(value("SELECT count(*) FROM transcript_parts WHERE kind = 'reply'")).toBe(settled);
  expect(value("SELECT count(*) FROM open_steps")).toBe(Number(steps) - Number(settled));
  for (const [column, sum] of [
    ["held", "CASE WHEN settled IS NULL THEN amount ELSE 0 END"],
    ["settled", "coalesce(settled, 0)"],
  ])
    expect(value(`SELECT ${column} FROM budget_counters`), column).toBe(
      value(`SELECT sum(${sum}) FROM holds`),
    );
  database.close();
}

it("can be migrated by several processes at once", async () => {
  const filename = temporaryFile();
  const processes = Array.from({ length: 3 }, () => startProcess("migrate", filename));
  await Promise.all(processes.map(({ lines }) => once(lines, "line")));
  for (const { child } of processes) child.stdin.end("go\n");
  for (const { exited } of processes) expect(await exited).toEqual([0, null]);
  const database = new DatabaseSync(filename);
  expect(database.prepare("SELECT version FROM tollgate_schema").all()).toHaveLength(1);
  database.close();
});

it("admits exactly as many as the budget allows, across processes (F40)", async () => {
  const filename = temporaryFile();
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  const processes = ["a", "b"].map((name) => startProcess("hold", filename, name));
  await Promise.all(processes.map(({ lines }) => once(lines, "line")));
  const answers = processes.map(({ lines }) => once(lines, "line"));
  for (const { child } of processes) child.stdin.end("go\n");
  const opened = (await Promise.all(answers)).map(([line]) => Number(line));
  expect(opened.reduce((sum, count) => sum + count, 0)).toBe(37);
  const { data } = await store.budgets.counters({ budgetId: "budget" }, { cursor: null, limit: 1 });
  expect(data).toMatchObject([{ settled: 0, held: 370 }]);
});

it("waits for another connection's lock without blocking the event loop (F31)", async () => {
  const filename = temporaryFile();
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  const other = new DatabaseSync(filename);
  other.exec("BEGIN IMMEDIATE");
  const opening = store.openStep(stepIntent("patient", [hold(100)]));
  // The event loop must keep running while the Step waits, or this test could not end the other transaction.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(await store.steps.get(owner.organizationId, "patient")).toBeNull();
  other.exec("COMMIT");
  expect(await opening).toMatchObject({ opened: true });
  other.close();
});

it("rejects writes and those queued behind them if the database stays locked (F31)", async () => {
  const filename = temporaryFile();
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  const other = new DatabaseSync(filename);
  other.exec("BEGIN IMMEDIATE");
  const group = Array.from({ length: 60 }, (_, at) => store.openStep(stepIntent(`step ${at}`)));
  const results = await Promise.allSettled(group);
  expect(new Set(results.map(({ status }) => status))).toEqual(new Set(["rejected"]));
  expect(results[59]).toMatchObject({ reason: { message: expect.stringContaining("locked") } });
  other.exec("COMMIT");
  other.close();
  expect(await store.openStep(stepIntent("after"))).toMatchObject({ opened: true });
});

it("leaves the lock to another process between two groups of writes (F40)", async () => {
  const filename = temporaryFile();
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  const other = new DatabaseSync(filename);
  onTestFinished(() => other.close());
  const countSteps = () => Number(other.prepare("SELECT count(*) AS n FROM steps").get()?.["n"]);
  let leftFree = false;
  // A process that is stalled between two groups leaves nothing free, so one of several tries is enough.
  for (let round = 0; round < 20 && !leftFree; round++) {
    for (const write of [1, 2]) {
      other.exec(`PRAGMA user_version = ${2 * round + write}`);
      await store.openStep(stepIntent(`noticing ${round}-${write}`));
    }
    const before = countSteps();
    const ids = Array.from({ length: 60 }, (_, at) => `step ${round}-${at}`);
    const [first, ...others] = ids.map((id) => store.openStep(stepIntent(id)));
    await first;
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    leftFree = countSteps() < before + 60;
    await Promise.all(others);
    expect(countSteps()).toBe(before + 60);
  }
  expect(leftFree).toBe(true);
});

it("removes processes with a lapsed lease once they have no open Steps", async () => {
  const filename = temporaryFile();
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  const renew = (processId: string, at: number) =>
    store.renewLease({ processId, renewal: 1, at, until: at + 15_000, clock, steps: [] });
  await renew("idle", 0);
  await renew("busy", 0);
  const intent = { ...stepIntent("step"), process: { id: "busy", renewal: 1 } };
  expect(await store.openStep(intent)).toMatchObject({ opened: true });
  await renew("next", 15_000);

  const database = new DatabaseSync(filename);
  onTestFinished(() => database.close());
  const processes = database.prepare("SELECT id FROM processes ORDER BY id").all();
  expect(processes.map(({ id }) => id)).toEqual(["busy", "next"]);
  const query = { at: 15_000, clock, after: null, limit: 10 } as const;
  expect((await store.lapsedSteps(query)).steps).toHaveLength(1);
});
