import type { Store } from "@tollgate/core/store";
import { expect } from "vitest";
import type { Intents } from "./intents.ts";
import { createResponding, historyOf, textOfMessages } from "./responding.ts";

/** What a test of shared stores works on: a store that has one live key, and others on its data. */
export interface SharedSubject {
  readonly store: Store;
  readonly intents: Intents;
  another(): Promise<Store>;
}

/** Declares one test of several stores on the same data. */
export type SharedTest = (title: string, run: (subject: SharedSubject) => Promise<void>) => void;

/** Stored responses that several stores read, write and remove at once. */
export function sharedResponseTests(test: SharedTest): void {
  test("a response stored by one store is read and continued through another", async ({
    store,
    intents,
    another,
  }) => {
    const other = await another();
    const { ids, added } = await createResponding(store, intents).chain(2);
    const next = await createResponding(other, intents).respond({
      previousResponseId: ids[1] ?? "",
      messages: [],
    });
    expect(await historyOf(store, intents.owner, next.id)).toBe(textOfMessages(added.flat()));
  });

  test("a history that races deletions is whole or not there (F44)", async ({
    store,
    intents,
    another,
  }) => {
    const [reader, remover] = [await another(), createResponding(await another(), intents)];
    for (let round = 0; round < 10; round++) {
      const { ids, added } = await createResponding(store, intents).chain(6);
      const removing = ids.toReversed().map((id) => remover.remove(id));
      const read: Promise<string | null>[] = [];
      for (let times = 0; times < 6; times++) {
        for (const id of ids) read.push(historyOf(reader, intents.owner, id));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const wholes = ids.map((_, place) => textOfMessages(added.slice(0, place + 1).flat()));
      for (const [at, history] of (await Promise.all(read)).entries())
        expect([wholes[at % ids.length], null]).toContain(history);
      expect(await Promise.all(removing)).toEqual(ids.map(() => true));
      for (const id of ids) expect(await historyOf(reader, intents.owner, id)).toBeNull();
    }
  });

  test("a history that races the sweeper is whole, and continues whole (F44)", async ({
    store,
    intents,
    another,
  }) => {
    const [reader, sweeper] = [await another(), await another()];
    const last = { expiresAt: 1_000 };
    const { chain, respond } = createResponding(store, intents);
    for (let round = 0; round < 10; round++) {
      const { ids, added } = await chain(6, (place) => (place === 5 ? last : { expiresAt: 1 }));
      const id = ids[5] ?? "";
      const whole = textOfMessages(added.flat());
      const work = ids.slice(1).map(() => sweeper.responses.sweep({ at: 1, limit: 1 }));
      const continuing = respond({
        previousResponseId: ids[4] ?? "",
        inherited: added.slice(0, 5).flat(),
        ...last,
      });
      const read = ids.map(() => historyOf(reader, intents.owner, id, 1));
      expect(await Promise.all(work)).toEqual([1, 1, 1, 1, 1]);
      for (const history of await Promise.all(read)) expect(history).toBe(whole);
      const next = await continuing;
      const expected = textOfMessages(added.slice(0, 5).flat());
      expect(await historyOf(reader, intents.owner, next.id, 1)).toBe(expected);
      await sweeper.responses.sweep({ at: 1_000, limit: 9 });
    }
  });

  test("of deletions by several stores exactly one counts", async ({ store, intents, another }) => {
    const stores = [store, await another(), await another()];
    const { ids } = await createResponding(store, intents).chain(3);
    const middle = ids[1] ?? "";
    const deleted = await Promise.all(
      stores.map((one) => createResponding(one, intents).remove(middle)),
    );
    expect(deleted.filter((one) => one)).toHaveLength(1);
    const leaves = await store.evidence.list(
      { organizationId: "acme" },
      { cursor: null, limit: 100 },
    );
    expect(leaves.data.filter(({ kind }) => kind === "response.deleted")).toHaveLength(1);
  });
}
