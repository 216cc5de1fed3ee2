import { describe, expect, it } from "vitest";
import { hold, stepIntent, stepSettlement } from "../../store-engine/test/step-intents.ts";
import type { PostgresClient } from "../src/database/client.ts";
import type { PostgresPool } from "../src/index.ts";
import { createPool, poolQuerying, storeOver } from "./databases.ts";

type Query = PostgresClient["query"];

/** A store on clients whose `query` another library has replaced. */
const openOn = (wrap: (query: Query) => Query) => storeOver(poolQuerying(createPool(), wrap));

function promisedAnswer(query: Query, sent: Parameters<Query>[0]) {
  return new Promise((resolve, reject) => {
    query(sent, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

describe("clients whose query was replaced", () => {
  it.each<[string, (query: Query) => Query]>([
    [
      "ignores the callback and returns a promise",
      (query) => (sent) => promisedAnswer(query, sent),
    ],
    [
      "passes the callback on and returns a promise of nothing",
      (query) => async (sent, answered) => {
        query(sent, answered);
      },
    ],
    [
      "calls the callback and returns a promise as well",
      (query) => (sent, answered) =>
        new Promise((resolve, reject) => {
          query(sent, (error, result) => {
            answered(error, result);
            if (error) reject(error);
            else resolve(result);
          });
        }),
    ],
  ])("write Steps if it %s", async (_what, wrap) => {
    const store = await openOn(wrap);
    await store.openStep(stepIntent("first", [hold(1_000)]));
    const names = Array.from({ length: 20 }, (_, at) => `step ${at}`);
    await Promise.all(names.map((name) => store.openStep(stepIntent(name, [hold(1_000)]))));
    await Promise.all(names.map((name) => store.settleStep(stepSettlement(name))));
    // Its statement fails on the server.
    const taken = stepIntent("failing");
    const transcript = { ...taken.transcript, newSessionId: "session of first" };
    await expect(store.openStep({ ...taken, transcript })).rejects.toThrow("new Session");
    const { data } = await store.budgets.counters(
      { budgetId: "budget" },
      { cursor: null, limit: 1 },
    );
    expect(data).toMatchObject([{ settled: 20 * 7, held: 10 }]);
    expect(store.status()).toMatchObject({ waiting: 0, inUse: 0 });
  });

  it("reject the call if it throws or its promise rejects", async () => {
    let fails: (() => unknown) | null = null;
    const store = await openOn((query) => (sent, answered) => {
      if (!fails) return query(sent, answered);
      return fails();
    });
    fails = () => {
      throw new Error("thrown by a wrapper");
    };
    await expect(store.openStep(stepIntent("thrown"))).rejects.toThrow("thrown by a wrapper");
    fails = () => Promise.reject(new Error("rejected by a wrapper"));
    await expect(store.openStep(stepIntent("rejected"))).rejects.toThrow("rejected by a wrapper");
    fails = null;
    expect(await store.openStep(stepIntent("last"))).toMatchObject({ opened: true });
    expect(store.status()).toMatchObject({ waiting: 0, inUse: 0 });
  });
});

it("opens Steps although the pool sometimes throws instead of lending a client", async () => {
  const pool = createPool();
  let throws = 0;
  const throwing: PostgresPool = {
    on: (event, listener) => pool.on(event, listener),
    off: (event, listener) => pool.off(event, listener),
    connect(taken) {
      if (throws > 0) {
        throws--;
        throw new Error("no client now");
      }
      pool.connect(taken);
    },
  };
  const store = await storeOver(throwing);
  await store.openStep(stepIntent("first"));
  throws = 2;
  const names = Array.from({ length: 20 }, (_, at) => `step ${at}`);
  const openings = await Promise.all(names.map((name) => store.openStep(stepIntent(name))));
  expect(openings.every(({ opened }) => opened)).toBe(true);
  throws = 99;
  await expect(store.openStep(stepIntent("last"))).rejects.toThrow("cannot connect: no client now");
});
