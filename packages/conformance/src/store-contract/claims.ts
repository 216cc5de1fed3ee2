import type {
  ClaimEnding,
  ClaimIntent,
  ConversationIntent,
  KeptAnswer,
  Store,
} from "@tollgate/core/store";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import type { Intents } from "./intents.ts";

const claim: ClaimIntent = { keySha256: "0a".repeat(32), requestSha256: "b0".repeat(32) };
const answer: KeptAnswer = {
  model: "us/lab/caf\u00e9",
  headers: { "content-type": "application/json", "x-note": '\u00e9 "quoted"' },
  body: Uint8Array.of(0, 1, 0x7f, 0x80, 0xff),
};
/** Later than every time of a test. */
const later = Date.UTC(2027, 0, 1);

/** Claims on idempotency keys: one Step answers for each. */
export function claimTests(test: ContractTest): void {
  test("refuses a second Step for a claimed key while the first is open", async (subject) => {
    const { store, intents } = subject;
    const first = await openClaiming(subject);
    expect(await store.openStep(claiming(intents))).toEqual(refusal(first, "in_progress"));
    expect((await openSteps(store)).length).toBe(1);
  });

  test("opens one of many Steps that claim a key at the same time", async ({ store, intents }) => {
    const steps = Array.from({ length: 12 }, () => claiming(intents));
    const openings = await Promise.all(steps.map((step) => store.openStep(step)));
    const [first, ...others] = openings.toSorted((a, b) => Number(b.opened) - Number(a.opened));
    expect(first?.opened).toBe(true);
    for (const other of others)
      expect(other).toMatchObject({ refusal: { code: "claimed", found: "in_progress" } });
    expect((await openSteps(store)).length).toBe(1);
  });

  test("opens Steps of different keys at the same time", async ({ store, intents }) => {
    const steps = Array.from({ length: 12 }, (_, at) =>
      claiming(intents, { keySha256: at.toString(16).repeat(64).slice(0, 64) }),
    );
    const openings = await Promise.all(steps.map((step) => store.openStep(step)));
    expect(openings.every(({ opened }) => opened)).toBe(true);
  });

  test("refuses another request under the same key, whatever became of the first", async (subject) => {
    const { store, intents } = subject;
    const first = await openClaiming(subject);
    const other = { requestSha256: "cc".repeat(32) };
    const mismatch = refusal(first, "mismatch");
    expect(await store.openStep(claiming(intents, other))).toEqual(mismatch);
    await settle(subject, first, { state: "kept", expiresAt: later, answer });
    expect(await store.openStep(claiming(intents, other))).toEqual(mismatch);
  });

  test("returns the kept answer byte for byte", async (subject) => {
    const { store, intents } = subject;
    const first = await openClaiming(subject);
    await settle(subject, first, { state: "kept", expiresAt: later, answer });
    for (const _ of [1, 2]) {
      const repeat = await store.openStep(claiming(intents));
      expect(repeat).toEqual({
        opened: false,
        refusal: { ...refusal(first, "kept").refusal, answer },
      });
    }
    expect((await openSteps(store)).length).toBe(0);
  });

  test("returns large kept answers", async (subject) => {
    const first = await openClaiming(subject);
    const large = {
      model: "test/lab/large",
      headers: {},
      body: Buffer.alloc(1_048_576, "a\u00e9"),
    };
    await settle(subject, first, { state: "kept", expiresAt: later, answer: large });
    const repeat = await subject.store.openStep(claiming(subject.intents));
    if (repeat.opened || repeat.refusal.code !== "claimed") return expect.fail("not refused");
    const kept = Buffer.from(repeat.refusal.answer?.body ?? []);
    expect(kept.equals(large.body)).toBe(true);
  });

  for (const state of ["interrupted", "not_kept"] as const)
    test(`says that the first Step's claim is ${state}`, async (subject) => {
      const first = await openClaiming(subject);
      await settle(subject, first, { state, expiresAt: later });
      const repeat = await subject.store.openStep(claiming(subject.intents));
      expect(repeat).toEqual(refusal(first, state));
    });

  test("opens a new Step for a freed key", async (subject) => {
    const first = await openClaiming(subject);
    await settle(subject, first, { state: "freed" });
    const second = await openClaiming(subject);
    const repeat = await subject.store.openStep(claiming(subject.intents));
    expect(repeat).toEqual(refusal(second, "in_progress"));
  });

  test("opens a new Step for an expired key, but not before it expires", async (subject) => {
    const { store, intents } = subject;
    const first = await openClaiming(subject);
    const expiresAt = first.at + 1_000_000;
    await settle(subject, first, { state: "kept", expiresAt, answer });
    const early = claiming(intents, {}, { at: expiresAt - 1 });
    expect(await store.openStep(early)).toMatchObject({ refusal: { found: "kept" } });
    const due = Array.from({ length: 4 }, () => claiming(intents, {}, { at: expiresAt }));
    const openings = await Promise.all(due.map((step) => store.openStep(step)));
    expect(openings.filter(({ opened }) => opened)).toHaveLength(1);
  });

  test("never lets the claim of an open Step expire", async (subject) => {
    const { store, intents } = subject;
    await openClaiming(subject);
    const repeat = await store.openStep(claiming(intents, {}, { at: later * 2 }));
    expect(repeat).toMatchObject({ refusal: { found: "in_progress" } });
    expect(await store.responses.sweep({ at: later * 2, limit: 9 })).toBe(0);
  });

  test("keeps the claims of other keys, organizations and endpoints apart", async (subject) => {
    const { store, intents } = subject;
    await openClaiming(subject);
    const otherKey = intents.withOwner({ keyId: "key-2" });
    const otherOrganization = intents.withOwner({ organizationId: "globex" });
    await store.keys.insert(otherKey.key());
    await store.keys.insert(otherOrganization.key());
    await expectOpened(store.openStep(claiming(otherKey)));
    await expectOpened(store.openStep(claiming(otherOrganization)));
    await expectOpened(store.openStep(claiming(intents, {}, { endpoint: "responses" })));
  });

  test("leaves no claim behind a refused Step", async ({ store, intents }) => {
    const none = intents.hold({ limit: 0 });
    const refused = await store.openStep(claiming(intents, {}, { holds: [none] }));
    expect(refused).toMatchObject({ refusal: { code: "budget_exceeded" } });
    await expectOpened(store.openStep(claiming(intents)));
  });

  test("refuses a claimed key before it looks at holds", async (subject) => {
    const { store, intents } = subject;
    await openClaiming(subject);
    const holds = [intents.hold({ limit: 0 })];
    const repeat = await store.openStep(claiming(intents, {}, { holds, budgetsVersion: 99 }));
    expect(repeat).toMatchObject({ refusal: { code: "claimed" } });
  });

  test("refuses an unknown key before it looks at claims", async (subject) => {
    await openClaiming(subject);
    const unknown = subject.intents.withOwner({ userId: "eve" });
    const refused = await subject.store.openStep(claiming(unknown));
    expect(refused).toMatchObject({ refusal: { code: "invalid_api_key" } });
  });

  test("opens a claiming Step once, however often it is asked to", async ({ store, intents }) => {
    const step = claiming(intents);
    const opened = await expectOpened(store.openStep(step));
    expect(await store.openStep(step)).toEqual(opened);
  });

  test("settles a claim once, with its Step", async (subject) => {
    const first = await openClaiming(subject);
    await settle(subject, first, { state: "interrupted", expiresAt: later });
    await settle(subject, first, { state: "freed" });
    const repeat = await subject.store.openStep(claiming(subject.intents));
    expect(repeat).toEqual(refusal(first, "interrupted"));
  });

  test("no longer keeps the answer of a deleted response", async (subject) => {
    const { store, intents } = subject;
    const endpoint = "responses";
    const first = claiming(intents, {}, { endpoint });
    await expectOpened(store.openStep(first));
    const response = intents.response(first);
    const settled = intents.settlement(first, {
      response,
      claim: { state: "kept", expiresAt: later, answer },
    });
    await store.settleStep(settled);
    const leaf = intents.leaf("response.deleted");
    const { id } = response;
    const deletion = { owner: intents.owner, id, at: intents.now(), leaf };
    expect(await store.responses.delete(deletion)).toBe(true);
    const repeat = await store.openStep(claiming(intents, {}, { endpoint }));
    expect(repeat).toEqual(refusal(first, "not_kept"));
  });

  test("removes expired claims, a limited number at a time, and no others", async (subject) => {
    const { store, intents } = subject;
    const endings = [30, 10, 20].map((at) => ({ at: intents.now(), expiresAt: at }));
    for (const [at, { expiresAt }] of endings.entries()) {
      const step = claiming(intents, { keySha256: `${at}`.repeat(64) });
      await expectOpened(store.openStep(step));
      await settle(subject, step, { state: "not_kept", expiresAt });
    }
    expect(await store.responses.sweep({ at: 9, limit: 9 })).toBe(0);
    expect(await store.responses.sweep({ at: 20, limit: 1 })).toBe(1);
    const kept = (at: number) =>
      store.openStep(claiming(intents, { keySha256: `${at}`.repeat(64) }, { at: 1 }));
    // A Step of time 1 finds the claims that are left.
    expect((await kept(0)).opened).toBe(false);
    expect((await kept(2)).opened).toBe(false);
    expect(await store.responses.sweep({ at: 40, limit: 9 })).toBe(2);
    expect(await store.responses.sweep({ at: 40, limit: 9 })).toBe(0);
  });
}

type Subject = { readonly store: Store; readonly intents: Intents };

function claiming(
  intents: Intents,
  changed: Partial<ClaimIntent> = {},
  overrides: Partial<Omit<ConversationIntent, "transcript">> = {},
): ConversationIntent {
  return intents.step([user("hello")], { ...overrides, claim: { ...claim, ...changed } });
}

async function openClaiming({ store, intents }: Subject): Promise<ConversationIntent> {
  const step = claiming(intents);
  await expectOpened(store.openStep(step));
  return step;
}

function settle({ store, intents }: Subject, step: ConversationIntent, ending: ClaimEnding) {
  const outcome = ending.state === "kept" ? "completed" : "failed";
  return store.settleStep(intents.settlement(step, { outcome, claim: ending }));
}

function refusal(first: ConversationIntent, found: string) {
  const { stepId, dataClass, at: openedAt, decision } = first;
  const facts = { stepId, decisionId: decision.id, dataClass, openedAt, answer: null };
  return { opened: false as const, refusal: { code: "claimed", found, ...facts } };
}

async function openSteps(store: Store) {
  const query = { organizationId: "acme", outcome: ["open" as const] };
  return (await store.steps.list(query, { cursor: null, limit: 100 })).data;
}
