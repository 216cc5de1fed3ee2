import { DatabaseSync } from "node:sqlite";
import type { Store } from "@tollgate/core/store";
import { expect, it, onTestFinished } from "vitest";
import {
  digestOf,
  insertKey,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { sqliteStore } from "../src/index.ts";

const expiresAt = 10;

/** A store, and the turns of the event loop in which it has committed. */
async function openStore(): Promise<{ readonly store: Store; readonly turns: number[] }> {
  const database = new DatabaseSync(":memory:");
  let turn = 0;
  const count = (): void => {
    turn++;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const turns: number[] = [];
  const store = sqliteStore({
    client: {
      exec(sql) {
        if (sql === "COMMIT") turns.push(turn);
        database.exec(sql);
      },
      prepare: (sql) => database.prepare(sql),
      close() {},
    },
  });
  onTestFinished(async () => {
    clearImmediate(counting);
    await store.close();
    database.close();
  });
  await store.migrate();
  await insertKey(store);
  return { store, turns };
}

/** Stores a response, and its answer for repeats of its request. */
async function storeResponse(store: Store, id: string, content: Uint8Array): Promise<void> {
  const claim = { keySha256: digestHex(`key ${id}`), requestSha256: digestHex(id) };
  await store.openStep({ ...stepIntent(id), claim });
  await store.settleStep({
    ...stepSettlement(id),
    response: {
      ...owner,
      id,
      stepId: id,
      sessionId: `session of ${id}`,
      dataClass: "D1_INTERNAL",
      previousResponseId: null,
      createdAt: 0,
      expiresAt,
      body: content,
      input: content,
      messages: content,
      inherited: Buffer.from("[]"),
    },
    claim: { state: "kept", expiresAt, answer: { model: "echo", headers: {}, body: content } },
  });
}

function digestHex(text: string): string {
  return Buffer.from(digestOf(text)).toString("hex");
}

it("removes large responses and claims in turns, and small ones at once", async () => {
  const { store, turns } = await openStore();
  const content = Buffer.alloc(200_000, "a");
  for (const id of ["a", "b", "c", "d", "e", "f"]) await storeResponse(store, id, content);
  for (const id of ["g", "h"]) await storeResponse(store, id, Buffer.from("{}"));
  turns.length = 0;
  expect(await store.responses.sweep({ at: expiresAt, limit: 100 })).toBe(16);
  // Five large responses alone, the sixth with the small ones, twice up to five claims, then nothing.
  expect(turns).toHaveLength(9);
  expect(new Set(turns).size).toBe(9);
  expect(await store.responses.get(owner, "a", 0)).toBeNull();
});

it("removes no more than its limit, and one row that is larger than all it may remove at once", async () => {
  const { store } = await openStore();
  for (const id of ["a", "b", "c"]) await storeResponse(store, id, Buffer.alloc(600_000, "a"));
  expect(await store.responses.sweep({ at: expiresAt, limit: 2 })).toBe(2);
  expect(await store.responses.get(owner, "b", 0)).toBeNull();
  expect(await store.responses.get(owner, "c", 0)).not.toBeNull();
  expect(await store.responses.sweep({ at: expiresAt - 1, limit: 9 })).toBe(0);
  expect(await store.responses.sweep({ at: expiresAt, limit: 9 })).toBe(4);
});
