import type { Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, type TestMessage, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { createConversation, type NamedIds, overridesOf } from "./conversation.ts";
import type { Intents } from "./intents.ts";

const organizationId = "acme";
const history = [user("a"), assistant("b"), user("c"), assistant("d")];

const dataClasses = ["D1_INTERNAL"];

function expectationOf(sessionId: string | null) {
  return sessionId === null ? null : { sessionId, dataClasses };
}

/** Finding the Session a Step would continue before it opens, and expecting it when it opens. */
export function foundSessionTests(test: ContractTest): void {
  const find = (
    store: Store,
    intents: Intents,
    messages: readonly TestMessage[],
    named: NamedIds = {},
  ) => store.sessions.find(intents.step(messages, overridesOf(named)));

  test("finds the Session a request would continue, and how many of its messages", async ({
    store,
    intents,
  }) => {
    const { exchange } = createConversation(store, intents);
    expect(await find(store, intents, history)).toBeNull();
    const { sessionId, turnId } = await exchange(history.slice(0, 1), history.slice(1, 2));
    const found = { sessionId, commonLength: 2, dataClasses };
    expect(await find(store, intents, history)).toEqual(found);
    for (const named of [
      { sessionId },
      { turnId },
      { previousSessionId: sessionId, source: "other" },
    ])
      expect(await find(store, intents, history, named)).toEqual(found);
    expect(await find(store, intents, history, { source: "other" })).toBeNull();
    expect(await find(store, intents, [user("x")])).toBeNull();
    expect(await find(store, intents, history, { sessionId: "unknown" })).toBeNull();
  });

  test("finds the Session a rewind would branch from, and the existing branch it would continue", async ({
    store,
    intents,
  }) => {
    const { exchange } = createConversation(store, intents);
    const { sessionId } = await exchange(history.slice(0, 3), history.slice(3));
    const rewound = [...history.slice(0, 2), user("other")];
    expect(await find(store, intents, rewound, { sessionId })).toEqual({
      sessionId,
      commonLength: 2,
      dataClasses,
    });
    const branch = await exchange(rewound, [assistant("x")], { sessionId });
    expect(await find(store, intents, [...rewound, assistant("x")], { sessionId })).toEqual({
      sessionId: branch.sessionId,
      commonLength: 4,
      dataClasses,
    });
  });

  test("finds no Session of another key, user or organization", async ({ store, intents }) => {
    const { exchange } = createConversation(store, intents);
    const { sessionId } = await exchange(history.slice(0, 1), history.slice(1, 2));
    const { owner, ...step } = intents.step(history, overridesOf({ sessionId }));
    for (const other of [
      { ...owner, keyId: "key-other" },
      { ...owner, userId: "user-other" },
      { ...owner, organizationId: "other" },
    ])
      expect(await store.sessions.find({ ...step, owner: other })).toBeNull();
    const unnamed = { ...step.transcript, sessionId: null };
    const others = { ...owner, keyId: "key-other" };
    expect(await store.sessions.find({ ...step, transcript: unnamed, owner: others })).toBeNull();
  });

  test("refuses a Step that would continue a different Session than expected", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const { sessionId } = await exchange(history.slice(0, 1), history.slice(1, 2));
    const expecting = (messages: readonly TestMessage[], expected: string | null) =>
      store.openStep(
        intents.step(messages, { transcript: { expectedSession: expectationOf(expected) } }),
      );
    const changed = { opened: false, refusal: { code: "session_changed" } };
    expect(await expecting(history, null)).toEqual(changed);
    expect(await expecting(history, "another")).toEqual(changed);
    expect(await expecting([user("new")], sessionId)).toEqual(changed);
    expect(await store.sessions.get(organizationId, sessionId)).toMatchObject({ length: 2 });
    expect(await expecting([user("new")], null)).toMatchObject({ opened: true });
    expect(await expecting(history, sessionId)).toMatchObject({ opened: true, sessionId });
    // For a branch, the expected Session is the one it branches from.
    const { sessionId: origin } = await open([user("o"), assistant("p")]);
    const branching = (expected: string) =>
      store.openStep(
        intents.step([user("o"), user("q")], {
          transcript: { sessionId: origin, expectedSession: expectationOf(expected) },
        }),
      );
    expect(await branching(sessionId)).toEqual(changed);
    expect(await branching(origin)).toMatchObject({ branchedFromSessionId: origin });
  });

  test("knows every data class of a Session's content", async ({ store, intents }) => {
    const openAs = async (messages: readonly TestMessage[], dataClass: string, named?: string) => {
      const transcript = named === undefined ? {} : { sessionId: named };
      const intent = intents.step(messages, { dataClass, transcript });
      const { sessionId } = await expectOpened(store.openStep(intent));
      await store.settleStep(intents.settlement(intent, { reply: [assistant("x")] }));
      return sessionId;
    };
    const classesOf = async (id: string) =>
      (await store.sessions.get(organizationId, id))?.dataClasses;
    const first = [user("a")];
    const second = [...first, assistant("x"), user("b")];
    const sessionId = await openAs(first, "D2_CONFIDENTIAL");
    expect(await openAs(second, "D1_INTERNAL")).toBe(sessionId);
    expect(await openAs([...second, assistant("x"), user("c")], "D2_CONFIDENTIAL")).toBe(sessionId);
    expect(await classesOf(sessionId)).toEqual(["D2_CONFIDENTIAL", "D1_INTERNAL"]);
    // A branch starts with content of its origin and adds its own.
    const branch = await openAs([...first, user("other")], "D3_RESTRICTED", sessionId);
    expect(branch).not.toBe(sessionId);
    const handled = ["D2_CONFIDENTIAL", "D1_INTERNAL", "D3_RESTRICTED"];
    expect(await classesOf(branch)).toEqual(handled);
    expect(await classesOf(sessionId)).toEqual(handled.slice(0, 2));
    const { data } = await store.sessions.list({ organizationId }, { cursor: null, limit: 10 });
    expect(data.map((session) => session.dataClasses)).toEqual([handled, handled.slice(0, 2)]);
  });

  test("opens one of two concurrent Steps that raise the data class of a Session", async ({
    store,
    intents,
  }) => {
    const { exchange } = createConversation(store, intents);
    await exchange(history.slice(0, 1), history.slice(1, 2));
    const expectedSession = await find(store, intents, history);
    const racing = ["D2_CONFIDENTIAL", "D3_RESTRICTED"].map((dataClass) =>
      store.openStep(
        intents.step([...history.slice(0, 2), user(dataClass)], {
          dataClass,
          transcript: { expectedSession, sessionId: expectedSession?.sessionId ?? null },
        }),
      ),
    );
    const results = await Promise.all(racing);
    expect(results.filter((result) => result.opened)).toHaveLength(1);
    expect(results.find((result) => !result.opened)).toEqual({
      opened: false,
      refusal: { code: "session_changed" },
    });
  });

  test("reads the parts of a transcript in a range of positions", async ({ store, intents }) => {
    const { exchange } = createConversation(store, intents);
    await exchange(history.slice(0, 1), history.slice(1, 2));
    const { sessionId } = await exchange(history.slice(0, 3), history.slice(3));
    const partsFrom = async (from: number, to?: number) =>
      (await store.sessions.transcript(organizationId, sessionId, from, to))?.map(
        (part) => part.from,
      );
    expect(await partsFrom(0)).toEqual([0, 1, 2, 3]);
    expect(await partsFrom(2)).toEqual([2, 3]);
    expect(await partsFrom(4)).toEqual([]);
    expect(await partsFrom(0, 2)).toEqual([0, 1]);
    expect(await partsFrom(1, 3)).toEqual([1, 2]);
    expect(await partsFrom(1, 1)).toEqual([]);
  });
}
