import { commitContent, type Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, contentOf, hex, sha256, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { createConversation } from "./conversation.ts";
import { createIntents } from "./intents.ts";

const text = "Be brief.\u0000 \u{1f600}\r\n";

/** The recorded contents of one Step: instructions, part of the transcript and reply, byte for byte. */
export function stepContentTests(test: ContractTest): void {
  test("reads instructions, request and reply back byte for byte (S21)", async ({
    store,
    intents,
  }) => {
    const messages = [user("\u0000 \u{1f600}"), { role: "user", json: '{ "a": 1.0 }' } as const];
    const reply = [assistant("\u0000 \u{1f600}")];
    const step = intents.step(messages, { instructions: instructionsOf(text) });
    await expectOpened(store.openStep(step));
    const inFlight = {
      instructions: textHex(text),
      request: hex(contentOf(messages)),
      reply: null,
      ...withoutReasoning,
    };
    expect(await contentsOf(store, step.stepId)).toEqual(inFlight);
    await store.settleStep(intents.settlement(step, { reply }));
    const whole = { ...inFlight, reply: hex(contentOf(reply)) };
    expect(await contentsOf(store, step.stepId)).toEqual(whole);
    expect(await contentsOf(store, step.stepId, null)).toEqual(whole);
  });

  test("records for each Step only its own new messages", async ({ store, intents }) => {
    const { exchange } = createConversation(store, intents);
    const first = await exchange([user("a")], [assistant("b")]);
    const history = [user("a"), assistant("b"), user("c")];
    const second = await exchange(history, [assistant("d")]);
    expect(second.sessionId).toBe(first.sessionId);
    expect(await contentsOf(store, first.intent.stepId)).toEqual({
      instructions: null,
      request: hex(contentOf([user("a")])),
      reply: hex(contentOf([assistant("b")])),
      ...withoutReasoning,
    });
    expect(await contentsOf(store, second.intent.stepId)).toEqual({
      instructions: null,
      request: hex(contentOf([user("c")])),
      reply: hex(contentOf([assistant("d")])),
      ...withoutReasoning,
    });
  });

  test("records the new messages of a branch, and none for a repeated request", async ({
    store,
    intents,
  }) => {
    const { exchange, open } = createConversation(store, intents);
    const { sessionId } = await exchange([user("a"), user("b")], [assistant("c")]);
    const branch = await exchange([user("a"), user("z")], [], { sessionId });
    expect(branch.branchedFromSessionId).toBe(sessionId);
    const { request } = await contentsOf(store, branch.intent.stepId);
    expect(request).toBe(hex(contentOf([user("z")])));
    const again = await open([user("a"), user("z")], { sessionId: branch.sessionId });
    expect(again.sessionId).toBe(branch.sessionId);
    expect(await contentsOf(store, again.intent.stepId)).toEqual(nothing);
  });

  test("records a reply that didn't join, and the instructions", async ({ store, intents }) => {
    const step = intents.step([user("a")], { instructions: instructionsOf(text) });
    await expectOpened(store.openStep(step));
    const partial = { outcome: "failed", reply: [assistant("par")], joins: false } as const;
    await store.settleStep(intents.settlement(step, partial));
    const { instructions, reply } = await contentsOf(store, step.stepId);
    expect([instructions, reply]).toEqual([textHex(text), hex(contentOf([assistant("par")]))]);
  });

  test("records no content if only digests are kept", async ({ store, intents }) => {
    const step = intents.step([user("a")], {
      transcript: { keep: "digest" },
      instructions: { ...instructionsOf(text), content: null },
    });
    await expectOpened(store.openStep(step));
    await store.settleStep(intents.settlement(step, { reply: [assistant("b")] }));
    const withheld = ["instructions", "request", "reply"];
    expect(await contentsOf(store, step.stepId)).toEqual({ ...nothing, withheld });
  });

  test("keeps the reasoning of an answer, or only its commitment", async ({ store, intents }) => {
    for (const isKept of [true, false]) {
      const step = intents.step([user(`${isKept}`)]);
      await expectOpened(store.openStep(step));
      const { content, ...commitment } = instructionsOf(text);
      const reasoning = { ...commitment, content: isKept ? content : null };
      await store.settleStep(intents.settlement(step, { reply: [assistant("b")], reasoning }));
      const { reasoning: found, withheld, reply } = await contentsOf(store, step.stepId);
      expect(reply).toBe(hex(contentOf([assistant("b")])));
      expect(found).toBe(isKept ? textHex(text) : null);
      expect(withheld).toEqual(isKept ? [] : ["reasoning"]);
    }
  });

  test("continues a Session when its instructions change", async ({ store, intents }) => {
    const openWith = (history: Parameters<typeof intents.step>[0], instructions: string) =>
      intents.step(history, { instructions: instructionsOf(instructions) });
    const first = openWith([user("a")], "one");
    const { sessionId } = await expectOpened(store.openStep(first));
    await store.settleStep(intents.settlement(first, { reply: [assistant("b")] }));
    const second = openWith([user("a"), assistant("b"), user("c")], "two");
    expect((await expectOpened(store.openStep(second))).sessionId).toBe(sessionId);
    const parts = await store.sessions.transcript("acme", sessionId);
    expect(parts?.map(({ kind, from, count }) => [kind, from, count])).toEqual([
      ["request", 0, 1],
      ["reply", 1, 1],
      ["request", 2, 1],
    ]);
    expect((await contentsOf(store, first.stepId)).instructions).toBe(textHex("one"));
    expect((await contentsOf(store, second.stepId)).instructions).toBe(textHex("two"));
  });

  test("returns no contents for an unknown or foreign Step", async ({ store, intents }) => {
    const { intent } = await createConversation(store, intents).open([user("a")]);
    const theirs = createIntents("globex");
    await store.keys.insert(theirs.key());
    expect(await store.steps.contents("globex", intent.stepId)).toBeNull();
    expect(await store.steps.contents("acme", "unknown")).toBeNull();
    expect(await store.steps.contents(null, "unknown")).toBeNull();
  });
}

const withoutReasoning = { reasoning: null, withheld: [] };
const nothing = { instructions: null, request: null, reply: null, ...withoutReasoning };

function instructionsOf(content: string) {
  const contentSalt = sha256("instructions");
  const bytes = Buffer.from(content);
  return { content: bytes, contentSalt, contentCommitment: commitContent(contentSalt, bytes) };
}

function textHex(content: string): string {
  return hex(Buffer.from(content));
}

async function contentsOf(store: Store, stepId: string, organizationId: string | null = "acme") {
  const contents = await store.steps.contents(organizationId, stepId);
  if (!contents) return expect.fail("Unknown Step.");
  const { instructions, request, reply, reasoning, withheld } = contents;
  return {
    instructions: instructions && hex(instructions),
    request: request && hex(request),
    reply: reply && hex(reply),
    reasoning: reasoning && hex(reasoning),
    withheld,
  };
}
