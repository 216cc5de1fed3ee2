import type { Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { countersOf } from "./budgets.ts";
import { assistant, type TestMessage, tool, user } from "./chain.ts";
import { createConversation, type OpenedStep } from "./conversation.ts";
import type { Intents } from "./intents.ts";
import { createResponseBuilder, historyOf, textOf, textOfMessages } from "./response-builder.ts";

const organizationId = "acme";
const wholePage = { cursor: null, limit: 100 };
const rounds = 5;

/** The subject of a test: three stores on the same data, as if in different processes. */
interface SkewSubject {
  readonly stores: readonly [Store, Store, Store];
  readonly intents: Intents;
}

/** Declares one test of concurrent decisions on the same rows. */
type SkewTest = (title: string, run: (subject: SkewSubject) => Promise<void>) => void;

/** Write skew: decisions that are each right on what they read, but wrong together. */
export function writeSkewTests(test: SkewTest): void {
  test("creates one branch for identical concurrent rewinds", async ({ stores, intents }) => {
    const [store] = stores;
    for (let round = 0; round < rounds; round++) {
      const asked = user(`round ${round}`);
      const origin = await createConversation(store, intents).exchange([asked], [assistant("b")]);
      const rewound = [asked, user("other")];
      const steps = await openConcurrently(stores, intents, [rewound, rewound, rewound], origin);
      const [id, ...others] = new Set(steps.map(({ sessionId }) => sessionId));
      expect(others).toEqual([]);
      expect(id).not.toBe(origin.sessionId);
      expect(steps.filter((step) => step.branchedFromSessionId !== null)).toHaveLength(1);
      await expectWhole(store, steps);
    }
  });

  test("creates a branch for each of several different concurrent rewinds", async ({
    stores,
    intents,
  }) => {
    const [store] = stores;
    for (let round = 0; round < rounds; round++) {
      const asked = user(`round ${round}`);
      const origin = await createConversation(store, intents).exchange([asked], [assistant("b")]);
      const requests = ["c", "d", "e"].map((text) => [asked, user(text)]);
      const steps = await openConcurrently(stores, intents, requests, origin);
      expect(new Set(steps.map(({ sessionId }) => sessionId)).size).toBe(3);
      for (const step of steps) expect(step.branchedFromSessionId).toBe(origin.sessionId);
      await expectWhole(store, steps);
    }
  });

  test("never gives concurrent tool results of one Turn the same position", async ({
    stores,
    intents,
  }) => {
    const [store] = stores;
    for (let round = 0; round < rounds; round++) {
      const asked = user(`round ${round}`);
      const calls = assistant("two calls");
      const first = await createConversation(store, intents).exchange([asked], [calls]);
      const requests = ["one", "two", "three"].map((text) => [asked, calls, tool(text)]);
      const steps = await openConcurrently(stores, intents, requests, first);
      expect(steps.filter(({ sessionId }) => sessionId === first.sessionId)).toHaveLength(1);
      const branches = steps.filter((step) => step.sessionId !== first.sessionId);
      for (const step of branches) expect(step.branchedFromSessionId).toBe(first.sessionId);
      await expectWhole(store, steps);
      const [same] = requests;
      const again = await openConcurrently(
        stores,
        intents,
        [same ?? [], same ?? [], same ?? []],
        first,
      );
      expect(new Set(again.map(({ sessionId }) => sessionId)).size).toBe(1);
      await expectWhole(store, again);
    }
  });

  test("leaves complete histories when a response is deleted while others continue it", async ({
    stores: [store, other, remover],
    intents,
  }) => {
    for (let round = 0; round < rounds; round++) {
      const { ids, added } = await createResponseBuilder(store, intents).chain(3);
      const previousResponseId = ids[2] ?? "";
      const inherited = added.flat();
      const messages = [assistant("more")];
      const whole = textOfMessages([...inherited, ...messages]);
      const continued = async (one: Store): Promise<string | null> => {
        if ((await historyOf(one, intents.owner, previousResponseId)) === null) return null;
        const built = { previousResponseId, inherited, messages };
        return (await createResponseBuilder(one, intents).respond(built)).id;
      };
      const continuing = [continued(store), continued(other), continued(store)];
      const removing = [2, 1].map((place) =>
        createResponseBuilder(remover, intents).remove(ids[place] ?? ""),
      );
      continuing.push(continued(other), continued(remover));
      expect(await Promise.all(removing)).toEqual([true, true]);
      for (const id of await Promise.all(continuing))
        if (id !== null) expect(await historyOf(store, intents.owner, id)).toBe(whole);
      expect(await continued(other)).toBeNull();
    }
  });

  test("opens no Step after its key is revoked, and writes nothing for a refused one", async ({
    stores,
    intents,
  }) => {
    const [store, , revoker] = stores;
    const stepOf = (one: Store, text: string) =>
      one.openStep(intents.step([user(text)], { holds: [intents.hold({ limit: 100_000 })] }));
    // Every store knows the key by now.
    for (const one of stores) expect(await stepOf(one, "before")).toMatchObject({ opened: true });
    const racing = Array.from({ length: 6 }, (_, at) => stepOf(stores[at % 2] ?? store, `${at}`));
    const change = { patch: { revokedAt: 1 }, leaf: intents.leaf("key.revoked") };
    await revoker.keys.change({ organizationId, id: "key-1" }, () => change);
    const later = await Promise.all(stores.map((one) => stepOf(one, "later")));
    const refusal = { code: "invalid_api_key" };
    for (const opening of later) expect(opening).toEqual({ opened: false, refusal });
    const raced = await Promise.all(racing);
    for (const opening of raced)
      if (!opening.opened) expect(opening).toEqual({ opened: false, refusal });
    const count = stores.length + raced.filter(({ opened }) => opened).length;
    const query = { organizationId };
    expect((await store.steps.list(query, wholePage)).data).toHaveLength(count);
    expect((await store.sessions.list(query, wholePage)).data).toHaveLength(count);
    expect((await store.decisions.list(query, wholePage)).data).toHaveLength(count);
    expect(await countersOf(store, "budget")).toMatchObject([{ settled: 0, held: count * 100 }]);
    const leaves = (await store.evidence.list(query, wholePage)).data;
    expect(leaves.filter(({ kind }) => kind === "step.opened")).toHaveLength(count);
  });
}

/** Opens a Step of one Session for each request, all at once and across the stores. */
function openConcurrently(
  stores: readonly Store[],
  intents: Intents,
  requests: readonly (readonly TestMessage[])[],
  { sessionId }: Pick<OpenedStep, "sessionId">,
): Promise<readonly OpenedStep[]> {
  return Promise.all(
    requests.map((messages, at) => {
      const store = stores[at % stores.length];
      if (!store) expect.fail("no store is open");
      return createConversation(store, intents).open(messages, { sessionId });
    }),
  );
}

/** Checks that each Session has every message of its Steps, with no gap and no overlap. */
async function expectWhole(store: Store, steps: readonly OpenedStep[]): Promise<void> {
  for (const { sessionId, intent } of steps) {
    const parts = (await store.sessions.transcript(organizationId, sessionId)) ?? [];
    let length = 0;
    for (const part of parts) {
      expect(part.from).toBe(length);
      length += part.count;
    }
    expect(await store.sessions.get(organizationId, sessionId)).toMatchObject({ length });
    const contents = parts.map(({ content }) => content ?? new Uint8Array());
    const asked = intent.transcript.messages.slice(0).join(",");
    expect(textOf(contents).startsWith(asked)).toBe(true);
  }
}
