import { DatabaseSync } from "node:sqlite";
import { type Store, yieldToEventLoop } from "@tollgate/core/store";
import { expect, it, onTestFinished } from "vitest";
import {
  hold,
  insertKey,
  leafOf,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { sqliteStore } from "../src/index.ts";
import { temporaryFile } from "./temporary-folder.ts";

/** A store of Steps with one hold each, and its file. */
async function openWith(steps: number) {
  const filename = temporaryFile();
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  for (let at = 0; at < steps; at++) await settled(store, `m ${at}`);
  return { filename, store };
}

async function settled(store: Store, id: string): Promise<void> {
  expect(await store.openStep(stepIntent(id, [{ ...hold(1), limit: 1_000_000 }]))).toMatchObject({
    opened: true,
  });
  await store.settleStep(stepSettlement(id));
}

it("finds a difference of exactly the damage while Steps before and after its place settle", async () => {
  const { filename, store } = await openWith(600);
  const client = new DatabaseSync(filename);
  onTestFinished(() => client.close());
  client.exec("UPDATE budget_counters SET settled = settled + 7");
  const reconciling = store.budgets.reconcile({ limit: 9 });
  for (let at = 0; at < 4; at++) {
    await settled(store, `a ${at}`);
    await settled(store, `z ${at}`);
    await yieldToEventLoop();
  }
  const { drift } = await reconciling;
  expect(drift.map(({ settled, ledger }) => settled - ledger.settled)).toEqual([7]);
});

it("counts a Step whose row has the number of a removed one", async () => {
  const { store } = await openWith(3);
  await store.openStep(stepIntent("z open", [{ ...hold(1), limit: 1_000_000 }]));
  const reconciling = store.budgets.reconcile({ limit: 9 });
  await yieldToEventLoop();
  await store.settleStep(stepSettlement("z open"));
  const leaf = () => leafOf("activity.removed", "sweep");
  const swept = await store.steps.sweep({
    from: "",
    at: Date.UTC(2100, 0),
    keep: 0,
    limit: 100,
    unfolded: new Map(),
    leaf,
  });
  expect(swept.removed).toBe(4);
  await settled(store, "a");
  expect((await reconciling).drift).toEqual([]);
});
