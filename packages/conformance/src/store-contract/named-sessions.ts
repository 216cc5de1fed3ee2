import { expect } from "vitest";
import { assistant, tool, user } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";
import { createConversation, overridesOf } from "./conversation.ts";

const organizationId = "acme";
const history = [user("a"), assistant("b"), user("c"), assistant("d")];

/** Requests with ids: continuations, rewinds with lineage, and ids of other owners. */
export function namedSessionTests(test: ContractTest): void {
  test("continues a named Session, even in flight", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const first = await open([user("a")]);
    const again = await open([user("a")], { sessionId: first.sessionId });
    expect(again).toMatchObject({ sessionId: first.sessionId, turnId: first.turnId });
  });

  test("branches from a named Session on a rewind, with the shared length", async ({
    store,
    intents,
  }) => {
    const { exchange } = createConversation(store, intents);
    const origin = await exchange(history.slice(0, 3), history.slice(3));
    const named = { sessionId: origin.sessionId };
    const rewound = [...history.slice(0, 2), user("other")];
    const branch = await exchange(rewound, [assistant("x")], named);
    expect(branch.sessionId).not.toBe(origin.sessionId);
    expect(branch.branchedFromSessionId).toBe(origin.sessionId);
    expect(await store.sessions.get(organizationId, branch.sessionId)).toMatchObject({
      branchedFromSessionId: origin.sessionId,
      commonLength: 2,
      length: 4,
    });
    expect(await store.sessions.get(organizationId, origin.sessionId)).toMatchObject({ length: 4 });
  });

  test("continues the branch when a client keeps sending the old id", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const origin = await exchange(history.slice(0, 3), history.slice(3));
    const named = { sessionId: origin.sessionId };
    const rewound = [user("a"), assistant("b"), user("other")];
    const branch = await exchange(rewound, [assistant("x")], named);
    const next = [...rewound, assistant("x"), user("y")];
    const onBranch = await exchange(next, [assistant("z")], named);
    expect(onBranch.sessionId).toBe(branch.sessionId);
    expect(onBranch.branchedFromSessionId).toBeNull();
    // A rewind of the branch creates another branch of the named Session. Both are followed from then on.
    const second = await open([...rewound, assistant("x"), user("again")], named);
    expect(second.branchedFromSessionId ?? second.sessionId).not.toBe(branch.sessionId);
    const third = await open([...next, assistant("z"), user("on")], named);
    expect(third.sessionId).toBe(branch.sessionId);
  });

  test("follows branches of branches, the longest first", async ({ store, intents }) => {
    const { exchange, open } = createConversation(store, intents);
    const origin = await exchange([user("a")], [assistant("b")]);
    const child = await exchange([user("x")], [assistant("y")], { sessionId: origin.sessionId });
    const grown = [user("x"), assistant("z"), user("w")];
    const grandchild = await open(grown, { sessionId: child.sessionId });
    expect(grandchild.branchedFromSessionId).toBe(child.sessionId);
    const followed = await open([...grown, assistant("v")], { sessionId: origin.sessionId });
    expect(followed.sessionId).toBe(grandchild.sessionId);
  });

  test("follows only its own branches, even if another Session's branch has the same history", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const { sessionId } = await exchange([user("a")], [assistant("b")]);
    const same = [user("same"), assistant("x")];
    const children: string[] = [];
    const grandchildren: string[] = [];
    for (const name of ["first", "second"]) {
      const child = await exchange([user(name)], [assistant("c")], { sessionId });
      const named = { sessionId: child.sessionId };
      children.push(child.sessionId);
      grandchildren.push((await exchange(same.slice(0, 1), same.slice(1), named)).sessionId);
    }
    for (const place of [0, 1]) {
      const named = { sessionId: children[place] ?? "" };
      const followed = await open([...same, user(`on ${place}`)], named);
      expect(followed.sessionId).toBe(grandchildren[place]);
    }
  });

  test("branches without new messages if the request is a prefix of the named Session", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const origin = await exchange(history.slice(0, 3), history.slice(3));
    const branch = await open(history.slice(0, 3), { sessionId: origin.sessionId });
    expect(branch.branchedFromSessionId).toBe(origin.sessionId);
    expect(await store.sessions.get(organizationId, branch.sessionId)).toMatchObject({
      commonLength: 3,
      length: 3,
    });
  });

  test("branches with length 0 if nothing is shared", async ({ store, intents }) => {
    const { exchange, open } = createConversation(store, intents);
    const origin = await exchange([user("a")], [assistant("b")]);
    const branch = await open([user("x")], { sessionId: origin.sessionId });
    expect(branch.branchedFromSessionId).toBe(origin.sessionId);
    const session = await store.sessions.get(organizationId, branch.sessionId);
    expect(session?.commonLength).toBe(0);
  });

  test("refuses an unknown or foreign Session or Turn, and writes nothing", async ({
    store,
    intents,
  }) => {
    const mine = createConversation(store, intents);
    const step = await mine.exchange([user("a")], [assistant("b")]);
    const others = [
      intents.withOwner({ keyId: "key-2" }),
      intents.withOwner({ keyId: "key-3", userId: "bob" }),
      intents.withOwner({ organizationId: "globex" }),
    ];
    const request = [user("a"), assistant("b"), tool("c")];
    for (const other of others) {
      await store.keys.insert(other.key());
      const session = other.step(request, overridesOf({ sessionId: step.sessionId }));
      expect(await store.openStep(session)).toEqual(refused("session_not_found"));
      const turn = other.step(request, overridesOf({ turnId: step.turnId }));
      expect(await store.openStep(turn)).toEqual(refused("turn_not_found"));
    }
    for (const messages of [request, [user("new")]]) {
      const sessionId = intents.step(messages, overridesOf({ sessionId: intents.id() }));
      expect(await store.openStep(sessionId)).toEqual(refused("session_not_found"));
      const turnId = intents.step(messages, overridesOf({ turnId: intents.id() }));
      expect(await store.openStep(turnId)).toEqual(refused("turn_not_found"));
    }
    const paging = { cursor: null, limit: 99 };
    expect((await store.sessions.list({ organizationId: null }, paging)).data).toHaveLength(1);
    expect((await store.steps.list({ organizationId: null }, paging)).data).toHaveLength(1);
  });

  test("keeps a named Turn only if the request adds no user message", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const first = await exchange([user("a")], [assistant("b")]);
    const second = await exchange(history.slice(0, 3), history.slice(3));
    expect(second.sessionId).toBe(first.sessionId);
    const named = { turnId: first.turnId };
    const follow = await open([...history, tool("e")], named);
    expect(follow).toMatchObject({ sessionId: first.sessionId, turnId: first.turnId });
    const omitted = await open([...history, tool("e"), assistant("f")]);
    expect(omitted.turnId).toBe(second.turnId);
    const fresh = await open([...history, tool("e"), assistant("f"), user("g")], named);
    expect(fresh.sessionId).toBe(first.sessionId);
    expect([first.turnId, second.turnId]).not.toContain(fresh.turnId);
  });

  test("ignores a named Turn whose Session doesn't match, and never branches", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const first = await exchange([user("a")], [assistant("b")]);
    const other = await exchange([user("x")], [assistant("y")]);
    const matching = [user("x"), assistant("y"), tool("z")];
    const found = await open(matching, { turnId: first.turnId });
    expect(found).toMatchObject({ sessionId: other.sessionId, turnId: first.turnId });
    const created = await open([user("q")], { turnId: first.turnId });
    expect(created.branchedFromSessionId).toBeNull();
    expect([first.sessionId, other.sessionId]).not.toContain(created.sessionId);
    expect(created.turnId).not.toBe(first.turnId);
  });

  test("confirms Sessions and Turns only to their owner", async ({ store, intents }) => {
    const { open } = createConversation(store, intents);
    const { sessionId, turnId } = await open([user("a")]);
    const { owner } = intents;
    expect(await store.sessions.isOwned(owner, sessionId)).toBe(true);
    expect(await store.sessions.findByTurn(owner, turnId)).toBe(sessionId);
    for (const change of [{ organizationId: "globex" }, { userId: "bob" }, { keyId: "key-2" }]) {
      const other = { ...owner, ...change };
      expect(await store.sessions.isOwned(other, sessionId)).toBe(false);
      expect(await store.sessions.findByTurn(other, turnId)).toBeNull();
    }
    expect(await store.sessions.isOwned(owner, intents.id())).toBe(false);
    expect(await store.sessions.findByTurn(owner, intents.id())).toBeNull();
  });
}

function refused(code: string): unknown {
  return { opened: false, refusal: { code } };
}
