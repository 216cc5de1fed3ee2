import { DatabaseSync } from "node:sqlite";
import type { Store } from "@tollgate/core/store";
import type { SqlValue } from "@tollgate/store-sql";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  hold,
  insertKey,
  leafOf,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { type SqliteClient, sqliteStore } from "../src/index.ts";
import { temporaryFile } from "./temporary-folder.ts";

interface Watched {
  readonly client: SqliteClient;
  /** The number of statements that ran. */
  statements: number;
  /** Runs instead of a COMMIT, or after it. */
  commit: ((commit: () => void) => void) | null;
}

/** A database that counts statements and whose commits can fail. */
function watch(path = ":memory:"): Watched {
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  const counted = <Arguments extends unknown[], Result>(run: (...given: Arguments) => Result) => {
    return (...given: Arguments): Result => {
      watched.statements++;
      return run(...given);
    };
  };
  const exec = counted((sql: string) => database.exec(sql));
  const client: SqliteClient = {
    exec(sql) {
      if (sql === "COMMIT" && watched.commit) watched.commit(() => exec(sql));
      else exec(sql);
    },
    prepare(sql) {
      const statement = database.prepare(sql);
      return {
        run: counted((...given: SqlValue[]) => statement.run(...given)),
        get: counted((...given: SqlValue[]) => statement.get(...given)),
        all: counted((...given: SqlValue[]) => statement.all(...given)),
      };
    },
    close() {},
  };
  const watched: Watched = { client, statements: 0, commit: null };
  return watched;
}

async function openStore(source: Parameters<typeof sqliteStore>[0]): Promise<Store> {
  const store = sqliteStore(source);
  onTestFinished(() => store.close());
  await store.migrate();
  return store;
}

async function openWatched(): Promise<{ readonly store: Store; readonly watched: Watched }> {
  const watched = watch();
  const store = await openStore({ client: watched.client });
  await insertKey(store);
  return { store, watched };
}

async function openSteps(store: Store, ids: readonly string[]): Promise<void> {
  const openings = await Promise.all(ids.map((id) => store.openStep(stepIntent(id))));
  expect(openings.every(({ opened }) => opened)).toBe(true);
}

describe("known rows", () => {
  it("save all reads of a Step that opens and settles", async () => {
    const { store, watched } = await openWatched();
    const steps = async (ids: readonly string[]): Promise<number> => {
      const before = watched.statements;
      await openSteps(store, ids);
      await Promise.all(ids.map((id) => store.settleStep(stepSettlement(id))));
      return (watched.statements - before) / ids.length;
    };
    await steps(["first"]);
    // 8 writes, one search for candidate Sessions, and 3 statements per transaction to begin and end it.
    expect(await steps(["alone"])).toBe(15);
    await steps(Array.from({ length: 16 }, (_, at) => `warm ${at}`));
    // For concurrent Steps, one statement writes up to 16 rows.
    expect(await steps(Array.from({ length: 32 }, (_, at) => `step ${at}`))).toBe(2.5625);
  });

  it("are not trusted where a row that was taken to be new exists", async () => {
    const { store } = await openWatched();
    await openSteps(store, ["settled"]);
    await store.settleStep(stepSettlement("settled"));
    const taken = stepIntent("taken");
    const { transcript } = stepIntent("settled");
    const results = await Promise.allSettled([
      store.openStep(stepIntent("before")),
      store.openStep(stepIntent("settled")),
      store.openStep({
        ...taken,
        transcript: { ...taken.transcript, newSessionId: transcript.newSessionId },
      }),
      store.openStep(stepIntent("after")),
    ]);
    expect(results.map(({ status }) => status)).toEqual([
      ...["fulfilled", "fulfilled", "rejected", "fulfilled"],
    ]);
    const found = ["before", "settled", "taken", "after"].map((id) => store.steps.get("acme", id));
    const outcomes = (await Promise.all(found)).map((step) => step?.outcome);
    expect(outcomes).toEqual([null, "completed", undefined, null]);
    const { data } = await store.evidence.list(
      { organizationId: "acme" },
      { cursor: null, limit: 9 },
    );
    expect(data.filter(({ kind }) => kind === "step.opened")).toHaveLength(3);
  });

  it("are written before their changes, whichever statement came first", async () => {
    const filename = temporaryFile();
    const before = await openStore({ filename });
    await insertKey(before);
    await openSteps(before, ["lost"]);
    const store = await openStore({ filename });
    await store.settleStep(stepSettlement("lost"));
    const [opened, settled] = await Promise.all([
      store.openStep(stepIntent("brief", [hold(1_000)])),
      store.settleStep(stepSettlement("brief")),
    ]);
    expect([opened.opened, settled.settled]).toEqual([true, true]);
    expect(await store.settleStep(stepSettlement("brief"))).toMatchObject({ settled: false });
    expect(await store.steps.get("acme", "brief")).toMatchObject({ outcome: "completed" });
  });

  it("are forgotten when another connection writes", async () => {
    const filename = temporaryFile();
    const here = await openStore({ filename });
    const there = await openStore({ filename });
    await insertKey(here);
    await openSteps(here, ["first"]);
    await there.keys.change({ organizationId: "acme", id: "key" }, () => ({
      patch: { revokedAt: 0 },
      leaf: leafOf("key.revoked", "key"),
    }));
    expect(await here.openStep(stepIntent("second"))).toEqual({
      opened: false,
      refusal: { code: "invalid_api_key" },
    });
    await there.settleStep(stepSettlement("first"));
    expect(await here.settleStep({ ...stepSettlement("first"), outcome: "failed" })).toEqual({
      settled: false,
      outcome: "completed",
    });
  });

  it("let rows wait for the end of a group that reads other tables", async () => {
    const filename = temporaryFile();
    const watched = watch(filename);
    const store = await openStore({ client: watched.client });
    const other = await openStore({ filename });
    await insertKey(store);
    const ids = Array.from({ length: 16 }, (_, at) => `step ${at}`);
    await Promise.all(ids.map((id) => store.openStep(stepIntent(id, [hold(160)]))));
    await other.keys.change({ organizationId: "acme", id: "key" }, () => ({
      patch: { label: "renamed" },
      leaf: leafOf("key.updated", "key"),
    }));
    const before = watched.statements;
    await Promise.all(ids.map((id) => store.settleStep(stepSettlement(id))));
    // Five statements for each Step, whose rows must be read again, and eight for all.
    expect(watched.statements - before).toBe(88);
  });

  it("include counters of two periods in one group", async () => {
    const { store } = await openWatched();
    const held = (amount: number, periodStart: number) => ({ ...hold(20), amount, periodStart });
    await Promise.all([
      store.openStep(stepIntent("today", [held(1, 0)])),
      store.openStep(stepIntent("tomorrow", [held(2, 1)])),
      store.openStep(stepIntent("today again", [held(4, 0)])),
    ]);
    const page = { cursor: null, limit: 9 };
    const { data } = await store.budgets.counters({ budgetId: "budget" }, page);
    expect(data.map((counter) => counter.held).toSorted()).toEqual([2, 5]);
  });

  it("are forgotten after other writes in the same group", async () => {
    const { store } = await openWatched();
    await openSteps(store, ["first"]);
    const [, opening] = await Promise.all([
      store.keys.change({ organizationId: "acme", id: "key" }, () => ({
        patch: { label: "renamed" },
        leaf: leafOf("key.updated", "key"),
      })),
      store.openStep(stepIntent("second")),
    ]);
    expect(opening).toEqual({ opened: false, refusal: { code: "key_changed" } });
  });

  it("are forgotten when a transaction is rolled back", async () => {
    const { store, watched } = await openWatched();
    watched.commit = () => {
      throw new Error("the disk is full");
    };
    await expect(store.openStep(stepIntent("lost", [hold(10)]))).rejects.toThrow("disk is full");
    watched.commit = null;
    await expect(store.settleStep(stepSettlement("lost"))).rejects.toThrow("Unknown Step");
    expect(await store.openStep(stepIntent("next", [hold(10)]))).toMatchObject({ opened: true });
    expect((await store.budgets.reconcile({ limit: 1 })).drift).toEqual([]);
  });

  it("find a Step whose commit succeeded without an answer", async () => {
    const { store, watched } = await openWatched();
    const intent = stepIntent("asked twice", [hold(15)]);
    watched.commit = (commit) => {
      commit();
      throw new Error("the answer was lost");
    };
    await expect(store.openStep(intent)).rejects.toThrow("answer was lost");
    watched.commit = null;
    expect(await store.openStep(intent)).toMatchObject({
      opened: true,
      sessionId: "session of asked twice",
    });
    await store.settleStep(stepSettlement("asked twice"));
    expect(await store.openStep(intent)).toMatchObject({ opened: true });
    const { data } = await store.budgets.counters(
      { budgetId: "budget" },
      { cursor: null, limit: 9 },
    );
    expect(data).toMatchObject([{ held: 0, settled: 7 }]);
  });

  it("find a Step that has settled since, and the Session it branched from", async () => {
    const { store } = await openWatched();
    await openSteps(store, ["origin"]);
    const other = stepIntent("branch");
    const transcript = { ...other.transcript, sessionId: "session of origin" };
    const intent = { ...other, transcript };
    const opening = await store.openStep(intent);
    expect(opening).toMatchObject({ branchedFromSessionId: "session of origin" });
    // Without a reply, the request would now continue the branch.
    await store.settleStep({ ...stepSettlement("branch"), outcome: "failed", reply: null });
    expect(await store.openStep(intent)).toEqual(opening);
  });

  it("are forgotten when one write of a group fails", async () => {
    const { store } = await openWatched();
    await openSteps(store, ["first"]);
    const taken = stepIntent("second");
    const transcript = { ...taken.transcript, newSessionId: "session of first" };
    const [refused, settled] = await Promise.allSettled([
      store.openStep({ ...taken, transcript }),
      store.settleStep(stepSettlement("first")),
    ]);
    expect(refused).toMatchObject({ reason: { code: "invalid_argument" } });
    expect(settled).toMatchObject({ value: { settled: true } });
    expect(await store.steps.get(owner.organizationId, "second")).toBeNull();
    await expect(store.settleStep(stepSettlement("second"))).rejects.toThrow("Unknown Step");
  });
});

/** The turns of the event loop in which a database commits. */
function turnsOfCommits(watched: Watched): readonly number[] {
  let turn = 0;
  const count = (): void => {
    turn++;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  onTestFinished(() => clearImmediate(counting));
  const turns: number[] = [];
  watched.commit = (commit) => {
    turns.push(turn);
    commit();
  };
  return turns;
}

describe("a group of writes", () => {
  it("leaves the event loop to others between its commits if one fails", async () => {
    const { store, watched } = await openWatched();
    const turns = turnsOfCommits(watched);
    const failed = store.keys.change({ organizationId: "acme", id: "key" }, () => {
      throw new Error("the check failed");
    });
    const opened = openSteps(store, ["first", "second", "third"]);
    await expect(failed).rejects.toThrow("the check failed");
    await opened;
    expect(turns).toHaveLength(3);
    expect(new Set(turns).size).toBe(3);
  });

  it("takes few large writes, in the order of their calls", async () => {
    const { store, watched } = await openWatched();
    const turns = turnsOfCommits(watched);
    const ids = Array.from({ length: 12 }, (_, at) => `step ${at}`);
    const large = ids.map((id) => stepIntent(id, [], "a".repeat(1_000_000)));
    const openings = await Promise.all(large.map((intent) => store.openStep(intent)));
    expect(openings.every(({ opened }) => opened)).toBe(true);
    // Five of 1 MB exceed 4 MiB.
    expect(turns).toHaveLength(3);
    expect(new Set(turns).size).toBe(3);
    const page = { cursor: null, limit: 99 };
    const { data } = await store.evidence.list({ organizationId: "acme" }, page);
    const opened = data.filter(({ kind }) => kind === "step.opened");
    expect(opened.map(({ id }) => id)).toEqual(ids.map((id) => `opening of ${id}`));
  });
});
