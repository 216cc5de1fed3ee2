import type { StepOutcome } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, chainOf, hex, tool, user } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";
import { createConversation, overridesOf } from "./conversation.ts";
import { messagesOf } from "./transcripts.ts";

const organizationId = "acme";

/** Assignment by omitted ids: the rules of section 3 of the specification, one by one. */
export function sessionTests(test: ContractTest): void {
  test("a completed exchange and one more message continue the Session in a new Turn", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const history = [user("a"), assistant("b")];
    const first = await exchange(history.slice(0, 1), history.slice(1));
    const next = await open([...history, user("c")]);
    expect(next.sessionId).toBe(first.sessionId);
    expect(next.turnId).not.toBe(first.turnId);
    expect(await store.sessions.get(organizationId, first.sessionId)).toEqual({
      ...intents.owner,
      id: first.sessionId,
      source: "api",
      head: hex(chainOf(intents.salt, [...history, user("c")]).at(-1)),
      length: 3,
      dataClasses: ["D1_INTERNAL"],
      createdAt: first.intent.at,
      updatedAt: next.intent.at,
      branchedFromSessionId: null,
      commonLength: 0,
    });
  });

  test("a tool-loop follow-up keeps the Turn", async ({ store, intents }) => {
    const { exchange, open } = createConversation(store, intents);
    const first = await exchange([user("a")], [assistant("call")]);
    const next = await open([user("a"), assistant("call"), tool("result")]);
    expect([next.sessionId, next.turnId]).toEqual([first.sessionId, first.turnId]);
  });

  test("a tool-loop follow-up that overtakes the settlement continues, and the reply is not appended again", async ({
    store,
    intents,
  }) => {
    const { open } = createConversation(store, intents);
    const history = [user("a"), assistant("call"), tool("result")];
    const first = await open(history.slice(0, 1));
    const next = await open(history);
    expect([next.sessionId, next.turnId]).toEqual([first.sessionId, first.turnId]);
    await store.settleStep(intents.settlement(first.intent, { reply: history.slice(1, 2) }));
    const transcript = await store.sessions.transcript(organizationId, first.sessionId);
    expect(transcript?.map(({ kind, from, count }) => [kind, from, count])).toEqual([
      ["request", 0, 1],
      ["request", 1, 2],
    ]);
    const step = await store.steps.get(organizationId, first.intent.stepId);
    expect(step?.replyHead).toBe(hex(chainOf(intents.salt, history)[1]));
  });

  test("two equal first requests at once are two Sessions", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const steps = await Promise.all([open([user("a")]), open([user("a")]), open([user("a")])]);
    expect(new Set(steps.map(({ sessionId }) => sessionId)).size).toBe(3);
  });

  test("an equal request in flight continues a Session that had history before", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const first = await exchange([user("a")], [assistant("b")]);
    const request = [user("a"), assistant("b"), user("c")];
    const [one, two] = [await open(request), await open(request)];
    expect([one.sessionId, two.sessionId]).toEqual([first.sessionId, first.sessionId]);
    expect(two.turnId).toBe(one.turnId);
  });

  for (const outcome of ["failed", "cancelled", "interrupted"] satisfies StepOutcome[])
    test(`a retry after a Step that ended ${outcome} is the same Session and Turn`, async ({
      store,
      intents,
    }) => {
      const { open } = createConversation(store, intents);
      const first = await open([user("a")]);
      const partial = { outcome, reply: [assistant("par")], joins: false };
      await store.settleStep(intents.settlement(first.intent, partial));
      const retry = await open([user("a")]);
      expect([retry.sessionId, retry.turnId]).toEqual([first.sessionId, first.turnId]);
    });

  test("an equal request after a completed Step is a new Session", async ({ store, intents }) => {
    const { exchange, open } = createConversation(store, intents);
    const first = await exchange([user("a")], [assistant("b")]);
    expect((await open([user("a")])).sessionId).not.toBe(first.sessionId);
  });

  test("a reply that never joins leaves the Session's head where the Step was sent", async ({
    store,
    intents,
  }) => {
    const { open } = createConversation(store, intents);
    for (const ending of [
      { outcome: "completed", joins: false },
      { outcome: "failed", joins: true },
    ] as const) {
      const step = await open([user(ending.outcome)]);
      await store.settleStep(
        intents.settlement(step.intent, { ...ending, reply: [assistant("b")] }),
      );
      expect((await store.sessions.get(organizationId, step.sessionId))?.length).toBe(1);
      const transcript = await store.sessions.transcript(organizationId, step.sessionId);
      expect(transcript).toHaveLength(1);
    }
  });

  test("concurrent appends lose nothing, and every Step stays", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const history = [user("a"), ...Array.from({ length: 12 }, (_, at) => tool(`${at}`))];
    const first = await open(history.slice(0, 1));
    const lengths = [3, 9, 5, 13, 7, 11, 2, 13];
    const named = { sessionId: first.sessionId };
    const steps = await Promise.all(lengths.map((length) => open(history.slice(0, length), named)));
    const ids = [first, ...steps].map(({ intent }) => intent.stepId);
    const list = await store.steps.list({ organizationId }, { cursor: null, limit: 99 });
    expect(list.data.map(({ id }) => id).sort()).toEqual(ids.sort());
    // A request that a longer one overtook is a rewind of the named Session; each history is whole.
    for (const { sessionId, intent } of steps) {
      const texts = await messagesOf(store, sessionId);
      expect(texts.slice(0, intent.transcript.messages.length)).toEqual(intent.transcript.messages);
    }
    const whole = await messagesOf(store, first.sessionId);
    expect(whole).toEqual(history.map(({ json }) => json));
  });

  test("the longest history wins over the most recently updated", async ({ store, intents }) => {
    const { exchange, open } = createConversation(store, intents);
    const long = await exchange([user("a"), assistant("b"), user("c")], [assistant("d")]);
    await exchange([user("a")], [assistant("b")]);
    const request = [user("a"), assistant("b"), user("c"), assistant("d"), user("e")];
    expect((await open(request)).sessionId).toBe(long.sessionId);
  });

  test("of equal histories the most recently updated wins", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const [one, two] = [await open([user("a")]), await open([user("a")])];
    await store.settleStep(intents.settlement(two.intent, { reply: [assistant("b")] }));
    await store.settleStep(intents.settlement(one.intent, { reply: [assistant("b")] }));
    const next = await open([user("a"), assistant("b"), user("c")]);
    expect(next.sessionId).toBe(one.sessionId);
  });

  for (const count of [99, 100, 101, 150])
    test(`of ${count} Sessions exactly the 100 most recently updated are candidates`, async ({
      store,
      intents,
    }) => {
      const { exchange, open } = createConversation(store, intents);
      const sessions: string[] = [];
      for (let at = 0; at < count; at++)
        sessions.push((await exchange([user(`${at}`)], [assistant("b")])).sessionId);
      const continues = async (at: number, named = {}): Promise<boolean> => {
        const { sessionId } = await open([user(`${at}`), assistant("b"), user("c")], named);
        return sessionId === sessions[at];
      };
      const oldest = Math.max(0, count - 100);
      expect(await continues(oldest)).toBe(true);
      // The Session just continued moved to the front, and the others kept their places.
      if (oldest > 0) expect(await continues(oldest - 1)).toBe(false);
    });

  test("the Session of a previous response is a candidate beside the 100", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const first = await exchange([user("first")], [assistant("b")]);
    for (let at = 0; at < 100; at++) await open([user(`${at}`)]);
    const request = [user("first"), assistant("b"), user("c")];
    const foreign = intents.as({ keyId: "key-2" });
    await store.keys.insert(foreign.key());
    const theirs = createConversation(store, foreign);
    const named = { previousSessionId: first.sessionId };
    expect((await theirs.open(request, named)).sessionId).not.toBe(first.sessionId);
    expect((await open(request, named)).sessionId).toBe(first.sessionId);
  });

  test("another key, user, organization or source never continues a Session", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const { sessionId } = await exchange([user("a")], [assistant("b")]);
    const request = [user("a"), assistant("b"), user("c")];
    for (const other of [{ keyId: "key-2" }, { keyId: "key-3", userId: "bob" }]) {
      const theirs = intents.as(other);
      await store.keys.insert(theirs.key());
      const step = await createConversation(store, theirs).open(request);
      expect(step.sessionId).not.toBe(sessionId);
    }
    const app = await open(request, { source: "app" });
    expect(app.sessionId).not.toBe(sessionId);
    expect((await open(request)).sessionId).toBe(sessionId);
    const more = [...request, assistant("d")];
    expect((await open(more, { source: "app" })).sessionId).toBe(app.sessionId);
  });

  test("an empty history matches nothing", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const empty = await open([]);
    await store.settleStep(intents.settlement(empty.intent, { outcome: "failed" }));
    const session = await store.sessions.get(organizationId, empty.sessionId);
    expect(session).toMatchObject({ head: "", length: 0 });
    for (const messages of [[], [user("a")]])
      expect((await open(messages)).sessionId).not.toBe(empty.sessionId);
  });

  test("a denied Step leaves no Session behind and does not move one forward", async ({
    store,
    intents,
  }) => {
    const { exchange } = createConversation(store, intents);
    const { sessionId } = await exchange([user("a")], [assistant("b")]);
    const before = await store.sessions.get(organizationId, sessionId);
    const request = [user("a"), assistant("b"), user("c")];
    const holds = [intents.hold({ limit: 0 })];
    const refused = await store.openStep(intents.step(request, { ...overridesOf({}), holds }));
    expect(refused.opened).toBe(false);
    expect(await store.sessions.get(organizationId, sessionId)).toEqual(before);
    const list = await store.sessions.list({ organizationId }, { cursor: null, limit: 9 });
    expect(list.data).toEqual([before]);
  });
}
