import type { StepOutcome } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, chainOf, hex, tool, user } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";
import { createConversation, overridesOf } from "./conversation.ts";
import { messagesOf } from "./transcripts.ts";

const organizationId = "acme";

/** Requests without ids: the rules of section 3 of the specification, one by one. */
export function sessionTests(test: ContractTest): void {
  test("continues the Session in a new Turn after a completed exchange", async ({
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

  test("keeps the Turn for a tool-loop follow-up", async ({ store, intents }) => {
    const { exchange, open } = createConversation(store, intents);
    const first = await exchange([user("a")], [assistant("call")]);
    const next = await open([user("a"), assistant("call"), tool("result")]);
    expect([next.sessionId, next.turnId]).toEqual([first.sessionId, first.turnId]);
  });

  test("continues for a tool-loop follow-up that arrives before the settlement, and does not append the reply twice", async ({
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

  test("creates two Sessions for two identical concurrent requests", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const steps = await Promise.all([open([user("a")]), open([user("a")]), open([user("a")])]);
    expect(new Set(steps.map(({ sessionId }) => sessionId)).size).toBe(3);
  });

  test("continues a Session with earlier history for an identical request in flight", async ({
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
    test(`keeps the Session and Turn for a retry after a Step that ended ${outcome}`, async ({
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

  test("creates a new Session for an identical request after a completed Step", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const first = await exchange([user("a")], [assistant("b")]);
    expect((await open([user("a")])).sessionId).not.toBe(first.sessionId);
  });

  test("leaves the Session's head at the request if the reply doesn't join", async ({
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

  test("loses no message and no Step under concurrent appends", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const history = [user("a"), ...Array.from({ length: 12 }, (_, at) => tool(`${at}`))];
    const first = await open(history.slice(0, 1));
    const lengths = [3, 9, 5, 13, 7, 11, 2, 13];
    const named = { sessionId: first.sessionId };
    const steps = await Promise.all(lengths.map((length) => open(history.slice(0, length), named)));
    const ids = [first, ...steps].map(({ intent }) => intent.stepId);
    const list = await store.steps.list({ organizationId }, { cursor: null, limit: 99 });
    expect(list.data.map(({ id }) => id).sort()).toEqual(ids.sort());
    // A request that arrives after a longer one is a rewind of the named Session. Each history is complete.
    for (const { sessionId, intent } of steps) {
      const texts = await messagesOf(store, sessionId);
      expect(texts.slice(0, intent.transcript.messages.length)).toEqual(intent.transcript.messages);
    }
    const whole = await messagesOf(store, first.sessionId);
    expect(whole).toEqual(history.map(({ json }) => json));
  });

  test("prefers the longest history to the most recently updated", async ({ store, intents }) => {
    const { exchange, open } = createConversation(store, intents);
    const long = await exchange([user("a"), assistant("b"), user("c")], [assistant("d")]);
    await exchange([user("a")], [assistant("b")]);
    const request = [user("a"), assistant("b"), user("c"), assistant("d"), user("e")];
    expect((await open(request)).sessionId).toBe(long.sessionId);
  });

  test("prefers the most recently updated of equal histories", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const [one, two] = [await open([user("a")]), await open([user("a")])];
    await store.settleStep(intents.settlement(two.intent, { reply: [assistant("b")] }));
    await store.settleStep(intents.settlement(one.intent, { reply: [assistant("b")] }));
    const next = await open([user("a"), assistant("b"), user("c")]);
    expect(next.sessionId).toBe(one.sessionId);
  });

  for (const count of [99, 100, 101, 150])
    test(`considers exactly the 100 most recently updated of ${count} Sessions`, async ({
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
      // The continued Session moved to the front; the others kept their order.
      if (oldest > 0) expect(await continues(oldest - 1)).toBe(false);
    });

  test("also considers the Session of a previous response", async ({ store, intents }) => {
    const { exchange, open } = createConversation(store, intents);
    const first = await exchange([user("first")], [assistant("b")]);
    for (let at = 0; at < 100; at++) await open([user(`${at}`)]);
    const request = [user("first"), assistant("b"), user("c")];
    const foreign = intents.withOwner({ keyId: "key-2" });
    await store.keys.insert(foreign.key());
    const theirs = createConversation(store, foreign);
    const named = { previousSessionId: first.sessionId };
    expect((await theirs.open(request, named)).sessionId).not.toBe(first.sessionId);
    expect((await open(request, named)).sessionId).toBe(first.sessionId);
  });

  test("never continues a Session of another key, user, organization or source", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const { sessionId } = await exchange([user("a")], [assistant("b")]);
    const request = [user("a"), assistant("b"), user("c")];
    for (const other of [{ keyId: "key-2" }, { keyId: "key-3", userId: "bob" }]) {
      const theirs = intents.withOwner(other);
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

  test("matches no Session for an empty history", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const empty = await open([]);
    await store.settleStep(intents.settlement(empty.intent, { outcome: "failed" }));
    const session = await store.sessions.get(organizationId, empty.sessionId);
    expect(session).toMatchObject({ head: "", length: 0 });
    for (const messages of [[], [user("a")]])
      expect((await open(messages)).sessionId).not.toBe(empty.sessionId);
  });

  test("does not create or change a Session for a denied Step", async ({ store, intents }) => {
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
