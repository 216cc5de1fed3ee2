import type { Owner, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, user } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";
import {
  createResponseBuilder,
  historyOf,
  openStepIn,
  textOfMessages,
} from "./response-builder.ts";

const strangers: readonly (readonly [string, Partial<Owner>])[] = [
  ["another key of the same user", { keyId: "key-2" }],
  ["another user of the same organization", { userId: "bob", keyId: "key-2" }],
  ["another organization with equal ids", { organizationId: "globex" }],
];

/** No Step can open as this owner, but reads can use it. */
const impossible: typeof strangers = [["another user under the same key's id", { userId: "bob" }]];

const neverStored = ["resp_unknown", "", "%", "' OR 1=1 --", "resp_\u0000", "r".repeat(10_000)];

/** Only its organization, user and key together see a stored response (S9, T2). */
export function responseOwnerTests(test: ContractTest): void {
  for (const [name, other] of [...strangers, ...impossible])
    test(`${name} sees, deletes and continues nothing`, async ({ store, intents }) => {
      const theirs = intents.withOwner(other);
      await store.keys.insert(theirs.key());
      const mine = createResponseBuilder(store, intents);
      const asked = createResponseBuilder(store, theirs);
      const { ids } = await mine.chain(3);
      await mine.remove(ids[1] ?? "");
      const expired = (await mine.respond({ expiresAt: 1 })).id;
      const leavesOfBoth = () =>
        Promise.all([leavesOf(store, intents.owner), leavesOf(store, theirs.owner)]);
      const leaves = await leavesOfBoth();
      for (const id of [...ids, expired, ...neverStored]) {
        expect(await store.responses.get(theirs.owner, id, 0)).toBeNull();
        expect(await store.responses.history(theirs.owner, id, 0)).toBeNull();
        expect(await asked.remove(id)).toBe(false);
      }
      expect(await leavesOfBoth()).toEqual(leaves);
      expect(await store.responses.get(intents.owner, ids[2] ?? "", 0)).not.toBeNull();
    });

  for (const [name, other] of strangers)
    test(`${name} who names a response continues their own messages instead`, async ({
      store,
      intents,
    }) => {
      const theirs = intents.withOwner(other);
      await store.keys.insert(theirs.key());
      const mine = createResponseBuilder(store, intents);
      const { id } = await mine.respond({ messages: [user("secret")] });
      const asked = await createResponseBuilder(store, theirs).respond({
        previousResponseId: id,
        inherited: [user("own")],
        messages: [assistant("b")],
      });
      const expected = textOfMessages([user("own"), assistant("b")]);
      expect(await historyOf(store, theirs.owner, asked.id)).toBe(expected);
      expect(await mine.remove(id)).toBe(true);
      expect(await historyOf(store, theirs.owner, asked.id)).toBe(expected);
    });

  test("finds no response that was never stored", async ({ store, intents }) => {
    const { respond, remove } = createResponseBuilder(store, intents);
    await respond();
    const { stepId } = await openStepIn(store, intents);
    for (const id of [stepId, ...neverStored]) {
      expect(await store.responses.get(intents.owner, id, 0)).toBeNull();
      expect(await store.responses.history(intents.owner, id, 0)).toBeNull();
      expect(await remove(id)).toBe(false);
    }
    expect(await leavesOf(store, intents.owner)).not.toContain("response.deleted");
  });
}

async function leavesOf(store: Store, { organizationId }: Owner): Promise<readonly string[]> {
  const page = await store.evidence.list({ organizationId }, { cursor: null, limit: 100 });
  return page.data.map(({ kind }) => kind);
}
