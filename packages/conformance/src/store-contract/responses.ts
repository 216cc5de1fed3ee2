import type { EvidenceLeaf, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, hex, user } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";
import { createIntents } from "./intents.ts";
import {
  createResponseBuilder,
  historyOf,
  openStepIn,
  textOfMessages,
} from "./response-builder.ts";

const wholePage = { cursor: null, limit: 100 };

/** One stored response: its content, and how settlements and deletions change it and the ledger. */
export function responseTests(test: ContractTest): void {
  test("reads a stored response back with every field, byte for byte", async (subject) => {
    const { store, intents } = subject;
    const content = (name: string) => Buffer.from(`{"${name}":"\u0000\\u0000 é \u{1f600}\r\n" }`);
    const { messages, inherited, ...stored } = await createResponseBuilder(store, intents).respond({
      previousResponseId: "resp_of_another_time",
      dataClass: "D2_CONFIDENTIAL",
      body: content("body"),
      input: content("input"),
      messages: [user("\u0000 \u{1f600}"), { role: "assistant", json: `{ "content" :"\u0000"}` }],
    });
    const read = await store.responses.get(intents.owner, stored.id, 0);
    expect(read && inHex(read)).toEqual(inHex(stored));
    const history = await store.responses.history(intents.owner, stored.id, 0);
    expect(history).toMatchObject({ sessionId: stored.sessionId, dataClass: "D2_CONFIDENTIAL" });
    expect(history?.messages.map(hex).at(-1)).toBe(hex(messages));
  });

  test("does not share bytes with callers or readers", async ({ store, intents }) => {
    const { respond } = createResponseBuilder(store, intents);
    const draft = await respond({ messages: [user("a")], inherited: [user("before")] });
    const before = inHex(draft);
    draft.body.fill(0);
    draft.messages.fill(0);
    draft.inherited.fill(0);
    for (let times = 0; times < 2; times++) {
      const history = await store.responses.history(intents.owner, draft.id, 0);
      expect(history?.messages.map((part) => Buffer.from(part).toString()).join()).not.toContain(
        "\0",
      );
      const response = await store.responses.get(intents.owner, draft.id, 0);
      const { messages, inherited, ...stored } = before;
      expect(response && inHex(response)).toEqual(stored);
      response?.body.fill(0);
      response?.input.fill(0);
      for (const part of history?.messages ?? []) part.fill(0);
    }
  });

  test("returns a response until, but not at, its expiry", async ({ store, intents }) => {
    const { respond, remove } = createResponseBuilder(store, intents);
    const { id, expiresAt } = await respond({ messages: [user("a")] });
    const read = async (at: number) => [
      (await store.responses.get(intents.owner, id, at)) !== null,
      await historyOf(store, intents.owner, id, at),
    ];
    expect(await read(expiresAt - 1)).toEqual([true, textOfMessages([user("a")])]);
    expect(await read(expiresAt)).toEqual([false, null]);
    expect(await remove(id, expiresAt)).toBe(false);
    expect(await read(expiresAt)).toEqual([false, null]);
  });

  test("deletes a response for good, keeps the ledger, and adds one leaf (T3)", async ({
    store,
    intents,
  }) => {
    const { respond } = createResponseBuilder(store, intents);
    const { id } = await respond();
    const before = await ledger(store);
    const leaf = intents.leaf("response.deleted");
    const deletion = { owner: intents.owner, id, at: 0, leaf };
    expect(await store.responses.delete(deletion)).toBe(true);
    expect(await store.responses.delete(deletion)).toBe(false);
    const again = { ...deletion, leaf: intents.leaf("response.deleted") };
    expect(await store.responses.delete(again)).toBe(false);
    expect(await store.responses.get(intents.owner, id, 0)).toBeNull();
    expect(await store.responses.history(intents.owner, id, 0)).toBeNull();
    const after = await ledger(store);
    expect(after.leaves.map(metaOf)).toEqual([...before.leaves.map(metaOf), leaf.meta]);
    expect({ ...after, leaves: [] }).toEqual({ ...before, leaves: [] });
  });

  test("stores no response for a Step without one (T4)", async ({ store, intents }) => {
    const step = await openStepIn(store, intents);
    const reply = [assistant("b")];
    await store.settleStep(intents.settlement(step, { reply }));
    expect(await store.responses.get(intents.owner, step.stepId, 0)).toBeNull();
    expect(await store.responses.sweep({ at: Number.MAX_SAFE_INTEGER, limit: 9 })).toBe(0);
    expect(await store.steps.get("acme", step.stepId)).toMatchObject({ outcome: "completed" });
  });

  test("stores the response of the first settlement only", async ({ store, intents }) => {
    const step = await openStepIn(store, intents);
    const first = intents.settlement(step, { response: intents.response(step) });
    const id = first.response?.id ?? "";
    expect(await store.settleStep(first)).toMatchObject({ settled: true });
    const late = intents.settlement(step, { response: intents.response(step) });
    expect(await store.settleStep(late)).toMatchObject({ settled: false });
    expect(await store.responses.get(intents.owner, late.response?.id ?? "", 0)).toBeNull();
    const changed = intents.response(step, { id, messages: [user("changed")] });
    for (const response of [first.response, changed])
      await store.settleStep({ ...first, response });
    expect(await historyOf(store, intents.owner, id)).toBe("");
    await createResponseBuilder(store, intents).remove(id);
    await store.settleStep(first);
    expect(await store.responses.get(intents.owner, id, 0)).toBeNull();
  });

  test("rejects a response of another Step or with a taken id, and settles nothing", async ({
    store,
    intents,
  }) => {
    const { id } = await createResponseBuilder(store, intents).respond();
    const step = await openStepIn(store, intents);
    const wrong = [
      { id },
      { stepId: "another" },
      { organizationId: "globex" },
      { userId: "bob" },
      { keyId: "key-2" },
    ];
    for (const overrides of wrong) {
      const response = intents.response(step, overrides);
      const settling = store.settleStep(intents.settlement(step, { response }));
      await expect(settling).rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect((await store.steps.get("acme", step.stepId))?.settledAt).toBeNull();
    expect(await store.settleStep(intents.settlement(step))).toMatchObject({ settled: true });
  });

  test("keeps responses of two organizations with equal ids apart", async ({ store, intents }) => {
    const theirs = createIntents("globex");
    await store.keys.insert(theirs.key());
    const both = [
      createResponseBuilder(store, intents),
      createResponseBuilder(store, theirs),
    ] as const;
    const last = "resp_2";
    for (const [place, { chain }] of both.entries())
      await chain(3, (at) => ({ id: `resp_${at}`, messages: [user(`${place} says ${at}`)] }));
    const histories = async () => [
      await historyOf(store, intents.owner, last),
      await historyOf(store, theirs.owner, last),
    ];
    const expected = both.map((_, place) =>
      textOfMessages([0, 1, 2].map((at) => user(`${place} says ${at}`))),
    );
    expect(await histories()).toEqual(expected);
    expect(await both[0].remove("resp_0")).toBe(true);
    expect(await histories()).toEqual(expected);
    expect(await both[1].remove("resp_0")).toBe(true);
    expect(await histories()).toEqual(expected);
    expect(await both[0].remove(last)).toBe(true);
    expect(await both[0].remove("resp_1")).toBe(true);
    expect(await histories()).toEqual([null, expected[1]]);
  });
}

/** A record with its bytes as text, so that differences are readable. */
function inHex(record: object): Readonly<Record<string, unknown>> {
  const entries = Object.entries(record).map(([name, value]: [string, unknown]) => [
    name,
    value instanceof Uint8Array ? hex(value) : value,
  ]);
  return Object.fromEntries(entries);
}

async function ledger(store: Store) {
  const tenant = { organizationId: null };
  const [steps, decisions, sessions, leaves] = await Promise.all([
    store.steps.list(tenant, wholePage),
    store.decisions.list(tenant, wholePage),
    store.sessions.list(tenant, wholePage),
    store.evidence.list({ organizationId: "acme" }, wholePage),
  ]);
  return {
    steps: steps.data,
    decisions: decisions.data,
    sessions: sessions.data,
    leaves: leaves.data,
  };
}

function metaOf({ meta }: EvidenceLeaf): string {
  return meta;
}
