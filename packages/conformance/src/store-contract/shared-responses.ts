import type { Store } from "@tollgate/core/store";
import { expect } from "vitest";
import type { Intents } from "./intents.ts";
import { createResponseBuilder, historyOf, textOfMessages } from "./response-builder.ts";

/** The subject of a test of shared stores: a store with one live key, and more stores on its data. */
interface SharedSubject {
  readonly store: Store;
  readonly intents: Intents;
  another(): Promise<Store>;
}

/** Declares one test of several stores on the same data. */
export type SharedTest = (title: string, run: (subject: SharedSubject) => Promise<void>) => void;

/** Stored responses that several stores read, write and remove concurrently. */
export function sharedResponseTests(test: SharedTest): void {
  test("reads and continues a response stored by another store", async ({
    store,
    intents,
    another,
  }) => {
    const other = await another();
    const { ids, added } = await createResponseBuilder(store, intents).chain(2);
    const next = await createResponseBuilder(other, intents).respond({
      previousResponseId: ids[1] ?? "",
      messages: [],
    });
    expect(await historyOf(store, intents.owner, next.id)).toBe(textOfMessages(added.flat()));
  });

  test("returns a complete history or none during concurrent deletions (F44)", async ({
    store,
    intents,
    another,
  }) => {
    const [reader, remover] = [await another(), createResponseBuilder(await another(), intents)];
    for (let round = 0; round < 5; round++) {
      const { ids, added } = await createResponseBuilder(store, intents).chain(6);
      const wholes = ids.map((_, place) => textOfMessages(added.slice(0, place + 1).flat()));
      const removing: Promise<boolean>[] = [];
      const reading: Promise<string | null>[] = [];
      for (const place of [2, 0, 4, 1, 5, 3]) {
        removing.push(remover.remove(ids[place] ?? ""));
        for (const id of ids) reading.push(historyOf(reader, intents.owner, id));
        await anotherTurn();
      }
      for (const [at, history] of (await Promise.all(reading)).entries())
        expect([wholes[at % ids.length], null]).toContain(history);
      expect(await Promise.all(removing)).toEqual(ids.map(() => true));
      for (const id of ids) expect(await historyOf(reader, intents.owner, id)).toBeNull();
    }
  });

  test("returns and continues complete histories during a concurrent sweep (F44)", async ({
    store,
    intents,
    another,
  }) => {
    const [reader, sweeper] = [await another(), await another()];
    const { chain, respond } = createResponseBuilder(store, intents);
    for (let round = 0; round < 5; round++) {
      const expiresAt = 1_000;
      const { ids, added } = await chain(6, (place) => ({ expiresAt: place < 5 ? 1 : expiresAt }));
      const inherited = added.slice(0, 5).flat();
      const continuing = { previousResponseId: ids[4] ?? "", inherited, expiresAt };
      const sweeping: Promise<number>[] = [];
      const reading: Promise<string | null>[] = [];
      const responding: Promise<{ readonly id: string }>[] = [];
      for (let times = 0; times < 5; times++) {
        responding.push(respond(continuing));
        sweeping.push(sweeper.responses.sweep({ at: 1, limit: 1 }));
        reading.push(historyOf(reader, intents.owner, ids[5] ?? "", 1));
        await anotherTurn();
      }
      expect(await Promise.all(sweeping)).toEqual([1, 1, 1, 1, 1]);
      for (const history of await Promise.all(reading))
        expect(history).toBe(textOfMessages(added.flat()));
      for (const { id } of await Promise.all(responding))
        expect(await historyOf(reader, intents.owner, id, 1)).toBe(textOfMessages(inherited));
    }
  });

  test("counts exactly one of several concurrent deletions", async ({
    store,
    intents,
    another,
  }) => {
    const stores = [store, await another(), await another()];
    const { ids } = await createResponseBuilder(store, intents).chain(3);
    const middle = ids[1] ?? "";
    const deleted = await Promise.all(
      stores.map((one) => createResponseBuilder(one, intents).remove(middle)),
    );
    expect(deleted.filter((one) => one)).toHaveLength(1);
    const leaves = await store.evidence.list(
      { organizationId: "acme" },
      { cursor: null, limit: 100 },
    );
    expect(leaves.data.filter(({ kind }) => kind === "response.deleted")).toHaveLength(1);
  });
}

/** Lets queued work start, so later calls run concurrently with it. */
function anotherTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
