import { expect, it } from "vitest";
import { hold, stepIntent } from "../../store-engine/test/step-intents.ts";
import { createPool, poolQuerying, storeOver } from "./databases.ts";

const page = { cursor: null, limit: 100 };

/** A store whose commits get answers that it can't read, once `garble` was called and until it is called again. */
async function openGarbled() {
  const pool = createPool();
  let isGarbled = false;
  const garbling = poolQuerying(pool, (query) => (sent, answered) => {
    query(sent, (failure, result) => {
      const isCommit = isGarbled && sent.text.includes(".commit_v");
      answered(failure, isCommit ? { rows: [{ outcomes: null }], rowCount: 1 } : result);
    });
  });
  const store = await storeOver(garbling);
  const garble = (): void => {
    isGarbled = !isGarbled;
  };
  return { store, garble };
}

it("rejects a Step whose commit gets an answer that it can't read, and goes on", async () => {
  const { store, garble } = await openGarbled();
  await store.openStep(stepIntent("first"));
  garble();
  await expect(store.openStep(stepIntent("alone"))).rejects.toThrow("outcomes");
  expect(store.status()).toMatchObject({ waiting: 0, inUse: 0 });
  garble();
  expect(await store.openStep(stepIntent("last"))).toMatchObject({ opened: true });
});

it("opens each Step of a statement once although it can't read the answer", async () => {
  const { store, garble } = await openGarbled();
  await store.openStep(stepIntent("first"));
  garble();
  const names = Array.from({ length: 20 }, (_, at) => `step ${at}`);
  await Promise.allSettled(names.map((name) => store.openStep(stepIntent(name, [hold(1_000)]))));
  garble();
  expect(store.status()).toMatchObject({ waiting: 0, inUse: 0 });
  expect((await store.steps.list({ organizationId: null }, page)).data).toHaveLength(21);
  const { data } = await store.budgets.counters({ budgetId: "budget" }, page);
  expect(data).toMatchObject([{ settled: 0, held: 200 }]);
});
