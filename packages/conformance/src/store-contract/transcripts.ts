import type { Store } from "@tollgate/core/store";
import { commitContent } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, contentOf, hex, type TestMessage, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { createConversation } from "./conversation.ts";

const organizationId = "acme";

/** The bytes of a Session: stored once, in order, unchanged. */
export function transcriptTests(test: ContractTest): void {
  test("joins a transcript to the whole history, and stores only new messages", async ({
    store,
    intents,
  }) => {
    const { exchange } = createConversation(store, intents);
    const history = [user("a"), assistant("b"), user("c"), assistant("d")];
    await exchange(history.slice(0, 1), history.slice(1, 2));
    const { sessionId } = await exchange(history.slice(0, 3), history.slice(3));
    const parts = (await store.sessions.transcript(organizationId, sessionId)) ?? [];
    expect(parts.map(({ kind, from, count }) => [kind, from, count])).toEqual([
      ["request", 0, 1],
      ["reply", 1, 1],
      ["request", 2, 1],
      ["reply", 3, 1],
    ]);
    expect(await messagesOf(store, sessionId)).toEqual(history.map(({ json }) => json));
  });

  test("reads content with any code point back byte for byte (S21)", async ({ store, intents }) => {
    const { exchange } = createConversation(store, intents);
    const request = hardTexts.flatMap((text) => [user(text), raw("user", text)]);
    const reply = [assistant(hardTexts.join("")), raw("assistant", hardTexts.join(" "))];
    const { sessionId } = await exchange(request, reply);
    const parts = await store.sessions.transcript(organizationId, sessionId);
    expect(parts?.map(({ content }) => hex(content ?? undefined))).toEqual(
      [request, reply].map((messages) => hex(contentOf(messages))),
    );
  });

  test("copies bytes, so neither caller nor reader can change them later", async ({
    store,
    intents,
  }) => {
    const { open } = createConversation(store, intents);
    const { intent, sessionId } = await open([user("a")]);
    const settlement = intents.settlement(intent, { reply: [assistant("b")] });
    const expected = [contentOf([user("a")]), contentOf([assistant("b")])].map(hex);
    await store.settleStep(settlement);
    settlement.reply?.content?.fill(0);
    const read = async () => (await store.sessions.transcript(organizationId, sessionId)) ?? [];
    for (const { content } of await read()) content?.fill(0);
    expect((await read()).map(({ content }) => hex(content ?? undefined))).toEqual(expected);
  });

  test("reads other texts of records back unchanged (S21)", async ({ store, intents }) => {
    const text = hardTexts.filter((part) => part.isWellFormed()).join("|");
    const intent = intents.step([user("a")], { requestedModel: text, source: text });
    const leaf = { ...intent.leaf, before: `{"text":${JSON.stringify(text)},"assignment":` };
    await store.openStep({ ...intent, leaf });
    const step = await store.steps.get(organizationId, intent.stepId);
    expect([step?.requestedModel, step?.source]).toEqual([text, text]);
    const leaves = await store.evidence.list({ organizationId }, { cursor: null, limit: 9 });
    expect(leaves.data.at(-1)?.meta.startsWith(leaf.before)).toBe(true);
  });

  test("starts a branch's transcript with the shared part, cut where they diverge", async ({
    store,
    intents,
  }) => {
    const { exchange } = createConversation(store, intents);
    const shared = [user('say "],[" \\'), assistant("{"), user("c")];
    const origin = await exchange(shared, [assistant("d")]);
    const fork = [...shared.slice(0, 2), user("other")];
    const named = { sessionId: origin.sessionId };
    const branch = await exchange(fork, [assistant("x")], named);
    const texts = [...fork, assistant("x")].map(({ json }) => json);
    expect(await messagesOf(store, branch.sessionId)).toEqual(texts);
    const parts = await store.sessions.transcript(organizationId, branch.sessionId);
    expect(parts?.map(({ kind, from, count }) => [kind, from, count])).toEqual([
      ["request", 0, 2],
      ["request", 2, 1],
      ["reply", 3, 1],
    ]);
    const deeper = await exchange([...shared.slice(0, 1), user("z")], [assistant("w")], {
      sessionId: branch.sessionId,
    });
    const deepTexts = [...shared.slice(0, 1), user("z"), assistant("w")].map(({ json }) => json);
    expect(await messagesOf(store, deeper.sessionId)).toEqual(deepTexts);
  });

  test("does not add later messages of the origin to its branches", async ({ store, intents }) => {
    const { open, exchange } = createConversation(store, intents);
    const first = await open([user("a")]);
    const branch = await exchange([user("b")], [assistant("c")], { sessionId: first.sessionId });
    await store.settleStep(intents.settlement(first.intent, { reply: [assistant("late")] }));
    expect(await messagesOf(store, branch.sessionId)).toHaveLength(2);
    expect(await messagesOf(store, first.sessionId)).toHaveLength(2);
  });

  test("keeps positions and counts but no content for `digest`, and attests the content", async ({
    store,
    intents,
  }) => {
    const intent = intents.step([user("secret")], { transcript: { keep: "digest" } });
    const opening = await expectOpened(store.openStep(intent));
    await store.settleStep(intents.settlement(intent, { reply: [assistant("hush")] }));
    expect(await store.sessions.transcript(organizationId, opening.sessionId)).toEqual([
      { stepId: intent.stepId, kind: "request", from: 0, count: 1, content: null },
      { stepId: intent.stepId, kind: "reply", from: 1, count: 1, content: null },
    ]);
    const leaves = await store.evidence.list({ organizationId }, { cursor: null, limit: 9 });
    const commitment = commitContent(intent.transcript.contentSalt, contentOf([user("secret")]));
    expect(leaves.data[1]?.meta).toContain(`"contentCommitment":"${hex(commitment)}"`);
  });

  test("appends nothing and attests no content for a request without new messages", async ({
    store,
    intents,
  }) => {
    const { open } = createConversation(store, intents);
    const first = await open([user("a")]);
    await store.settleStep(intents.settlement(first.intent, { outcome: "failed" }));
    await open([user("a")]);
    expect(await store.sessions.transcript(organizationId, first.sessionId)).toHaveLength(1);
    const leaves = await store.evidence.list({ organizationId }, { cursor: null, limit: 9 });
    expect(leaves.data.at(-1)?.meta).toContain(
      `"branchedFromSessionId":null,"commonLength":1,"contentCommitment":null`,
    );
  });

  test("rejects a chain that doesn't fit its messages", async ({ store, intents }) => {
    const intent = intents.step([user("a")], { transcript: { chain: new Uint8Array(31) } });
    await expect(store.openStep(intent)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await store.steps.get(organizationId, intent.stepId)).toBeNull();
    const step = intents.step([user("a")]);
    await store.openStep(step);
    const settlement = intents.settlement(step, { reply: [assistant("b")] });
    const reply = settlement.reply && { ...settlement.reply, chain: new Uint8Array(33) };
    const odd = store.settleStep({ ...settlement, reply });
    await expect(odd).rejects.toThrow();
    expect((await store.steps.get(organizationId, step.stepId))?.settledAt).toBeNull();
  });
}

/** The texts of a Session's messages, each parsed and serialized again. */
export async function messagesOf(store: Store, sessionId: string): Promise<readonly string[]> {
  const parts = (await store.sessions.transcript(organizationId, sessionId)) ?? [];
  let length = 0;
  return parts.flatMap(({ from, count, content }) => {
    const messages: unknown = JSON.parse(Buffer.from(content ?? []).toString());
    if (!Array.isArray(messages)) return expect.fail("A part is not an array of messages.");
    expect([from, messages.length]).toEqual([length, count]);
    length += count;
    return messages.map((message) => JSON.stringify(message));
  });
}

/** A message with minimal JSON escaping, and spaces that a parser would drop. */
function raw(role: TestMessage["role"], text: string): TestMessage {
  return { role, json: `{ "role" : "${role}", "n": 1e2, "content": ${JSON.stringify(text)} }` };
}

const hardTexts = [
  "\u0000",
  "\u0001\u001f\u007f\u0080\u009f",
  "\t\n\r\\\"'`$%?;--",
  "\u00e9e\u0301\u2028\u2029\ufeff",
  "\u07ff\u0800\ufffd\uffff",
  "\u{10000}\u{1f600}\u{10ffff}",
  "\ud800",
  "\udc00x\ud83d",
  "\u202e\u200d\u0600",
  "",
];
