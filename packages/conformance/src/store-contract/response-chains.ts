import { expect } from "vitest";
import { assistant, user } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";
import {
  createResponseBuilder,
  historyOf,
  openStepIn,
  textOfMessages,
} from "./response-builder.ts";

/** Responses that continue one another. Their history survives the removal of any of them. */
export function responseChainTests(test: ContractTest): void {
  test("returns all messages of a chain as its history, oldest first", async ({
    store,
    intents,
  }) => {
    const { chain } = createResponseBuilder(store, intents);
    const { ids, added } = await chain(5);
    for (const [place, id] of ids.entries()) {
      const expected = textOfMessages(added.slice(0, place + 1).flat());
      expect(await historyOf(store, intents.owner, id)).toBe(expected);
    }
  });

  test("keeps the histories of a chain of 5 whichever are deleted, in every order", async ({
    store,
    intents,
  }) => {
    const { chain, remove } = createResponseBuilder(store, intents);
    const deleteIn = async (order: readonly number[]): Promise<void> => {
      const { ids, added } = await chain(5);
      const remaining = new Set(ids);
      for (const deleted of order) {
        const id = ids[deleted] ?? "";
        expect(await remove(id)).toBe(true);
        remaining.delete(id);
        for (const [place, one] of ids.entries()) {
          if (one !== id && !remaining.has(one)) continue;
          const whole = textOfMessages(added.slice(0, place + 1).flat());
          const expected = remaining.has(one) ? whole : null;
          expect(await historyOf(store, intents.owner, one)).toBe(expected);
        }
      }
      for (const id of ids) expect(await historyOf(store, intents.owner, id)).toBeNull();
    };
    const orders = permutationsOf([0, 1, 2, 3, 4]);
    for (let at = 0; at < orders.length; at += 12)
      await Promise.all(orders.slice(at, at + 12).map(deleteIn));
  });

  test("keeps responses that continue the same one separate", async ({ store, intents }) => {
    const { respond, remove } = createResponseBuilder(store, intents);
    const root = await respond({ messages: [user("root")] });
    const built = { previousResponseId: root.id, inherited: [user("root")] };
    const left = await respond({ ...built, messages: [assistant("left")] });
    const right = await respond({ ...built, messages: [assistant("right")] });
    await remove(root.id);
    await remove(left.id);
    expect(await historyOf(store, intents.owner, left.id)).toBeNull();
    const expected = textOfMessages([user("root"), assistant("right")]);
    expect(await historyOf(store, intents.owner, right.id)).toBe(expected);
  });

  test("reads a history through expired and swept responses", async ({ store, intents }) => {
    const { chain } = createResponseBuilder(store, intents);
    const { ids, added } = await chain(4, (place) => ({
      expiresAt: [10, 30, 20, 100][place] ?? 0,
    }));
    const whole = textOfMessages(added.flat());
    const last = ids[3] ?? "";
    expect(await historyOf(store, intents.owner, last, 99)).toBe(whole);
    for (const at of [10, 20, 30]) {
      expect(await store.responses.sweep({ at, limit: 9 })).toBe(1);
      expect(await historyOf(store, intents.owner, last, 99)).toBe(whole);
    }
    expect(await historyOf(store, intents.owner, last, 100)).toBeNull();
  });

  test("removes several responses of a chain in one sweep, and keeps the remaining histories complete", async ({
    store,
    intents,
  }) => {
    const { chain, respond } = createResponseBuilder(store, intents);
    const gone = new Set([0, 2, 3, 4]);
    const { ids, added } = await chain(7, (at) => (gone.has(at) ? { expiresAt: 1 } : {}));
    const previousResponseId = ids[3] ?? "";
    const beside = await respond({ previousResponseId, messages: [user("beside")] });
    expect(await store.responses.sweep({ at: 1, limit: 9 })).toBe(4);
    for (const place of [1, 5, 6]) {
      const expected = textOfMessages(added.slice(0, place + 1).flat());
      expect(await historyOf(store, intents.owner, ids[place] ?? "")).toBe(expected);
    }
    const expected = textOfMessages([...added.slice(0, 4).flat(), user("beside")]);
    expect(await historyOf(store, intents.owner, beside.id)).toBe(expected);
  });

  test("removes a response with at most 1 MiB of the messages that were kept for it, and sweeps the rest", async ({
    store,
    intents,
  }) => {
    const { chain, remove } = createResponseBuilder(store, intents);
    const { ids } = await chain(4, () => ({ messages: [user("a".repeat(600_000))] }));
    for (const id of ids) expect(await remove(id)).toBe(true);
    // The last deletion removed two responses.
    expect(await store.responses.sweep({ at: 1, limit: 9 })).toBe(1);
    expect(await store.responses.sweep({ at: 1, limit: 9 })).toBe(0);
  });

  test("keeps the inherited messages if the previous response is gone at settlement", async ({
    store,
    intents,
  }) => {
    const { chain, remove } = createResponseBuilder(store, intents);
    for (const depart of [
      (id: string) => remove(id),
      async () => (await store.responses.sweep({ at: 10, limit: 9 })) > 0,
    ]) {
      const { ids, added } = await chain(2, () => ({ expiresAt: 10 }));
      const step = await openStepIn(store, intents);
      const response = intents.response(step, {
        previousResponseId: ids[1] ?? "",
        inherited: added.flat(),
        messages: [user("c")],
      });
      expect(await depart(ids[1] ?? "")).toBe(true);
      await store.settleStep(intents.settlement(step, { response }));
      const expected = textOfMessages([...added.flat(), user("c")]);
      expect(await historyOf(store, intents.owner, response.id)).toBe(expected);
      const read = await store.responses.get(intents.owner, response.id, 0);
      expect(read?.previousResponseId).toBe(ids[1]);
    }
  });

  test("drops the inherited messages while the previous response exists, expired or not", async ({
    store,
    intents,
  }) => {
    const { respond } = createResponseBuilder(store, intents);
    const first = await respond({ messages: [user("stored")], expiresAt: 1 });
    const { id } = await respond({
      previousResponseId: first.id,
      inherited: [user("brought")],
      messages: [user("c")],
      createdAt: 50,
    });
    const expected = textOfMessages([user("stored"), user("c")]);
    expect(await historyOf(store, intents.owner, id, 50)).toBe(expected);
  });

  test("sweeps what expires first, up to the limit", async ({ store, intents }) => {
    const { respond, remove } = createResponseBuilder(store, intents);
    const expiries = [50, 10, 40, 20, 30, 60, 70];
    const ids: string[] = [];
    for (const expiresAt of expiries) ids.push((await respond({ expiresAt })).id);
    const remaining = async () => {
      const found = ids.map((id) => store.responses.get(intents.owner, id, 0));
      return (await Promise.all(found)).flatMap((one) => (one ? [one.expiresAt] : []));
    };
    const before = await store.evidence.list({ organizationId: "acme" }, wholePage);
    expect(await store.responses.sweep({ at: 9, limit: 9 })).toBe(0);
    expect(await store.responses.sweep({ at: 60, limit: 2 })).toBe(2);
    expect(await remaining()).toEqual([50, 40, 30, 60, 70]);
    expect(await store.responses.sweep({ at: 60, limit: 3 })).toBe(3);
    expect(await remaining()).toEqual([60, 70]);
    expect(await store.responses.sweep({ at: 60, limit: 3 })).toBe(1);
    expect(await store.responses.sweep({ at: 60, limit: 3 })).toBe(0);
    expect(await remaining()).toEqual([70]);
    const after = await store.evidence.list({ organizationId: "acme" }, wholePage);
    expect(after.data).toHaveLength(before.data.length);
    expect(await remove(ids[0] ?? "")).toBe(false);
  });
}

const wholePage = { cursor: null, limit: 100 };

function permutationsOf(items: readonly number[]): readonly (readonly number[])[] {
  if (items.length === 0) return [[]];
  return items.flatMap((item) =>
    permutationsOf(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
  );
}
