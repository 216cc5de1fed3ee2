import type {
  ErasedTranscripts,
  EvidenceLeaf,
  RemovedSteps,
  StepSweep,
  Store,
  SweepResult,
} from "@tollgate/core/store";
import { leafHash } from "@tollgate/core/store";
import { expect } from "vitest";
import { countersOf } from "./budgets.ts";
import { assistant, user } from "./chain.ts";
import { type ContractSubject, type ContractTest, expectOpened } from "./contract-test.ts";
import { createConversation } from "./conversation.ts";
import { createIntents, type Intents } from "./intents.ts";

const day = 86_400_000;
const start = Date.UTC(2026, 0, 5, 12);
/** A sweep at which everything at the tests' default times is a day too old. */
const aDayLater = { from: "", at: start + 2 * day, keep: day, limit: 100 };

/** Retention: which rows it removes, which it keeps, and which leaves it writes. */
export function retentionTests(test: ContractTest): void {
  stepRetentionTests(test);
  transcriptRetentionTests(test);
}

function stepRetentionTests(test: ContractTest): void {
  test("removes Steps older than the retention, with a leaf that counts them", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    const first = await exchange([user("a")], [assistant("b")]);
    await exchange([user("c")], [assistant("d")]);
    const late = intents.step([user("e")], { at: start + 2 * day });
    await expectOpened(store.openStep(late));
    expect(await sweepSteps(subject)).toEqual({ removed: 2, next: null });
    expect(await stepIds(store)).toEqual([late.stepId]);
    expect(await store.steps.get("acme", first.intent.stepId)).toBeNull();
    expect(await store.steps.contents("acme", first.intent.stepId)).toBeNull();
    expect(await removals(store)).toEqual([{ organizationId: "acme", count: 2 }]);
    expect(await sweepSteps(subject)).toEqual({ removed: 0, next: null });
    expect(await removals(store)).toHaveLength(1);
  });

  test("keeps a Step exactly as old as the retention, and removes one a millisecond older", async (subject) => {
    const { store, intents } = subject;
    const [old, young] = [start + day - 1, start + day].map((at) =>
      intents.step([user(`${at}`)], { at }),
    );
    for (const step of [old, young]) {
      if (!step) return expect.fail();
      await expectOpened(store.openStep(step));
      await store.settleStep(intents.settlement(step));
    }
    await sweepSteps(subject);
    expect(await stepIds(store)).toEqual([young?.stepId]);
  });

  test("keeps the Turn and the decision of a removed Step", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    const { intent, sessionId, turnId } = await exchange([user("a")], [assistant("b")]);
    await sweepSteps(subject);
    expect(await store.sessions.findByTurn(intent.owner, turnId)).toBe(sessionId);
    const { data } = await store.decisions.list(
      { organizationId: "acme" },
      { cursor: null, limit: 9 },
    );
    expect(data.map(({ id }) => id)).toEqual([intent.decision.id]);
  });

  test("keeps an open Step of any age, which can still settle", async (subject) => {
    const { store, intents } = subject;
    const holds = [intents.hold()];
    const step = intents.step([user("a")], { holds });
    await expectOpened(store.openStep(step));
    expect(await sweepSteps(subject)).toEqual({ removed: 0, next: null });
    expect(await store.settleStep(intents.settlement(step))).toMatchObject({ settled: true });
    expect(await sweepSteps(subject)).toEqual({ removed: 1, next: null });
    expect(await countersOf(store, "budget")).toMatchObject([{ settled: 60, held: 0 }]);
    expect((await store.budgets.reconcile({ limit: 10 })).drift).toEqual([]);
    await expect(store.settleStep(intents.settlement(step))).rejects.toMatchObject({
      code: "step_not_found",
    });
  });

  test("removes at most one chunk at a time, oldest first", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    const ids: string[] = [];
    for (let at = 0; at < 5; at++) ids.push((await exchange([user(`${at}`)], [])).intent.stepId);
    expect(await sweepSteps(subject, { limit: 2 })).toEqual({
      removed: 2,
      next: expect.any(String),
    });
    expect(await stepIds(store)).toEqual(ids.slice(2).reverse());
    expect(await sweepSteps(subject, { limit: 2 })).toEqual({
      removed: 2,
      next: expect.any(String),
    });
    expect(await sweepSteps(subject, { limit: 2 })).toMatchObject({ removed: 1 });
    expect(await stepIds(store)).toEqual([]);
  });

  test("keeps lists and new Steps working after a removal", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    for (let at = 0; at < 4; at++) await exchange([user(`${at}`)], []);
    const page = await store.steps.list({ organizationId: "acme" }, { cursor: null, limit: 1 });
    await sweepSteps(subject, { limit: 2 });
    const { data } = await exchangeAndRead(store, intents, page.nextCursor);
    expect(data).toHaveLength(1);
    expect(await stepIds(store)).toHaveLength(3);
  });

  test("keeps the Sessions, transcripts, decisions and leaves of removed Steps", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    const { sessionId } = await exchange([user("a")], [assistant("b")]);
    const before = await kept(store, sessionId);
    await sweepSteps(subject);
    const after = await kept(store, sessionId);
    expect(after).toEqual({ ...before, leaves: [...before.leaves, "activity.removed"] });
    const next = await exchange([user("a"), assistant("b"), user("c")], [assistant("d")]);
    expect(next.sessionId).toBe(sessionId);
  });

  test("writes one leaf of removed Steps per organization", async (subject) => {
    const { store, intents } = subject;
    const theirs = createIntents("globex");
    await store.keys.insert(theirs.key());
    await createConversation(store, theirs).exchange([user("a")], []);
    for (const text of ["b", "c"])
      await createConversation(store, intents).exchange([user(text)], []);
    expect(await sweepSteps(subject)).toEqual({ removed: 3, next: null });
    expect(await removals(store)).toEqual([{ organizationId: "acme", count: 2 }]);
    expect(await removals(store, "globex")).toEqual([{ organizationId: "globex", count: 1 }]);
  });

  test("keeps the Steps of an organization from the time on that its sums don't reach", async (subject) => {
    const { store, intents } = subject;
    const theirs = createIntents("globex");
    await store.keys.insert(theirs.key());
    await createConversation(store, theirs).exchange([user("a")], []);
    const { exchange } = createConversation(store, intents);
    const { intent } = await exchange([user("b")], []);
    const nothing = { unfolded: new Map([["acme", intent.at]]) };
    expect(await sweepSteps(subject, nothing)).toEqual({ removed: 1, next: null });
    expect(await stepIds(store)).toEqual([intent.stepId]);
    expect(await removals(store)).toEqual([]);
    const all = { unfolded: new Map([["acme", intent.at + 1]]) };
    expect(await sweepSteps(subject, all)).toEqual({ removed: 1, next: null });
    expect(await removals(store)).toEqual([{ organizationId: "acme", count: 1 }]);
  });

  test("goes on with the organization in which it stopped, until it has swept all", async (subject) => {
    const { store, intents } = subject;
    const owners = ["globex", "initech"].map((organizationId) => createIntents(organizationId));
    for (const owner of owners) await store.keys.insert(owner.key());
    for (const owner of [intents, ...owners])
      for (const text of ["a", "b", "c"])
        await createConversation(store, owner).exchange([user(text)], []);
    const counts: number[] = [];
    for (let from: string | null = ""; from !== null; ) {
      const swept: SweepResult = await sweepSteps(subject, { from, limit: 2 });
      counts.push(swept.removed);
      from = swept.next;
    }
    expect(counts.reduce((sum, count) => sum + count)).toBe(9);
    expect(Math.max(...counts)).toBe(2);
    const rest: SweepResult = await sweepTranscripts(subject, { from: "globex" });
    expect(rest).toEqual({ removed: 6, next: null });
    expect(await sweepTranscripts(subject)).toEqual({ removed: 3, next: null });
  });
}

function transcriptRetentionTests(test: ContractTest): void {
  test("erases the content of an unused Session, which can still continue (S42)", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    const { sessionId, intent } = await exchange([user("a")], [assistant("b")]);
    expect(await sweepTranscripts(subject)).toEqual({ removed: 1, next: null });
    expect(await contents(store, sessionId)).toEqual([null, null]);
    const withheld = ["request", "reply"];
    expect(await store.steps.contents("acme", intent.stepId)).toEqual({ ...nothing, withheld });
    expect(await erasures(store)).toEqual([{ organizationId: "acme", sessionIds: [sessionId] }]);
    const next = await exchange([user("a"), assistant("b"), user("c")], [assistant("d")]);
    expect(next.sessionId).toBe(sessionId);
    expect((await contents(store, sessionId)).map((one) => one !== null)).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(await sweepTranscripts(subject)).toEqual({ removed: 1, next: null });
    expect(await contents(store, sessionId)).toEqual([null, null, null, null]);
    expect(await sweepTranscripts(subject)).toEqual({ removed: 0, next: null });
    expect(await erasures(store)).toHaveLength(2);
  });

  test("keeps the content of a Session in use", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    const used = await exchange([user("a")], [assistant("b")]);
    const unused = await exchange([user("x")], [assistant("y")]);
    const step = intents.step([user("a"), assistant("b"), user("c")], { at: start + 2 * day });
    await expectOpened(store.openStep(step));
    expect(await sweepTranscripts(subject)).toEqual({ removed: 1, next: null });
    expect(await contents(store, unused.sessionId)).toEqual([null, null]);
    expect((await contents(store, used.sessionId)).every((one) => one !== null)).toBe(true);
  });

  test("also erases instructions, reasoning, and replies that didn't join", async (subject) => {
    const { store, intents } = subject;
    const bytes = Buffer.from("Be brief.");
    const instructions = { content: bytes, contentSalt: bytes, contentCommitment: bytes };
    const step = intents.step([user("a")], { instructions });
    await expectOpened(store.openStep(step));
    const partial = { outcome: "failed", reply: [assistant("par")], joins: false } as const;
    await store.settleStep(intents.settlement(step, { ...partial, reasoning: instructions }));
    expect(await sweepTranscripts(subject)).toEqual({ removed: 1, next: null });
    const withheld = ["instructions", "request", "reply", "reasoning"];
    expect(await store.steps.contents("acme", step.stepId)).toEqual({ ...nothing, withheld });
  });

  test("keeps the content a branch in use starts with", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    const { sessionId } = await exchange([user("a"), user("b")], [assistant("c")]);
    const branch = intents.step([user("a"), user("z")], {
      at: start + 2 * day,
      transcript: { sessionId },
    });
    const { sessionId: branchId } = await expectOpened(store.openStep(branch));
    await store.settleStep(intents.settlement(branch, { at: start + 2 * day }));
    expect(branchId).not.toBe(sessionId);
    expect(await sweepTranscripts(subject)).toEqual({ removed: 0, next: null });
    expect((await contents(store, branchId)).every((one) => one !== null)).toBe(true);
    expect(await sweepTranscripts(subject, { at: start + 4 * day })).toMatchObject({ removed: 2 });
    expect(await contents(store, sessionId)).toEqual([null, null]);
    expect(await contents(store, branchId)).toEqual([null, null]);
  });

  test("keeps transcripts of removed Steps, and erases them later", async (subject) => {
    const { store, intents } = subject;
    const { sessionId } = await createConversation(store, intents).exchange([user("a")], []);
    await sweepSteps(subject);
    expect((await contents(store, sessionId)).every((one) => one !== null)).toBe(true);
    expect(await sweepTranscripts(subject)).toMatchObject({ removed: 1 });
    expect(await contents(store, sessionId)).toEqual([null]);
  });

  test("erases a long Session in several chunks, each with a leaf that names it", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    const messages = [user("first")];
    const { sessionId } = await exchange(messages, [assistant("reply")]);
    for (const letter of ["a", "b", "c"]) {
      messages.push(assistant("reply"), user(letter.repeat(3_000_000)));
      expect((await exchange(messages, [assistant("reply")])).sessionId).toBe(sessionId);
    }
    const swept = async () => ({
      ...(await sweepTranscripts(subject)),
      erased: (await contents(store, sessionId)).filter((content) => content === null).length,
    });
    expect(await swept()).toEqual({ removed: 0, next: expect.any(String), erased: 4 });
    expect(await swept()).toEqual({ removed: 0, next: expect.any(String), erased: 6 });
    expect(await swept()).toEqual({ removed: 1, next: null, erased: 8 });
    expect(await swept()).toEqual({ removed: 0, next: null, erased: 8 });
    const leaf = { organizationId: "acme", sessionIds: [sessionId] };
    expect(await erasures(store)).toEqual([leaf, leaf, leaf]);
  });

  test("erases Sessions of two organizations that have the same id", async (subject) => {
    const { store, intents } = subject;
    const theirs = createIntents("globex");
    await store.keys.insert(theirs.key());
    const transcript = { newSessionId: intents.id() };
    for (const owner of [theirs, intents]) {
      const step = owner.step([user("a")], { transcript });
      await expectOpened(store.openStep(step));
      await store.settleStep(owner.settlement(step, { reply: [assistant("b")] }));
    }
    expect(await sweepTranscripts(subject)).toEqual({ removed: 2, next: null });
    for (const { organizationId } of [theirs.owner, intents.owner]) {
      const parts = await store.sessions.transcript(organizationId, transcript.newSessionId);
      expect(parts?.map(({ content }) => content)).toEqual([null, null]);
    }
  });

  test("erases at most one chunk at a time", async (subject) => {
    const { store, intents } = subject;
    const { exchange } = createConversation(store, intents);
    for (let at = 0; at < 3; at++) await exchange([user(`${at}`)], []);
    expect(await sweepTranscripts(subject, { limit: 2 })).toEqual({
      removed: 2,
      next: expect.any(String),
    });
    expect(await sweepTranscripts(subject, { limit: 2 })).toEqual({ removed: 1, next: null });
  });
}

const nothing = { instructions: null, request: null, reply: null, reasoning: null };

/** A store, and a source of ids and leaves. */
type Subject = Pick<ContractSubject, "store" | "intents">;

/** Removes Steps older than a day, two days later. */
export function sweepSteps({ store, intents }: Subject, overrides: Partial<StepSweep> = {}) {
  const leaf = (removed: RemovedSteps) => leafOf(intents, "activity.removed", removed);
  return store.steps.sweep({ ...aDayLater, unfolded: new Map(), ...overrides, leaf });
}

/** Erases transcripts older than a day, two days later. */
export function sweepTranscripts(
  { store, intents }: Subject,
  overrides: Partial<typeof aDayLater> = {},
) {
  const leaf = (erased: ErasedTranscripts) => leafOf(intents, "transcripts.erased", erased);
  return store.sessions.sweep({ ...aDayLater, ...overrides, leaf });
}

function leafOf(
  intents: Intents,
  kind: EvidenceLeaf["kind"],
  facts: RemovedSteps | ErasedTranscripts,
): EvidenceLeaf {
  const meta = JSON.stringify(facts);
  const { organizationId } = facts;
  return { ...intents.leaf(kind), organizationId, meta, hash: leafHash(meta) };
}

const wholePage = { cursor: null, limit: 100 };

async function stepIds(store: Store): Promise<readonly string[]> {
  const { data } = await store.steps.list({ organizationId: "acme" }, wholePage);
  return data.map(({ id }) => id);
}

async function exchangeAndRead(store: Store, intents: Intents, cursor: string | null) {
  await createConversation(store, intents).exchange([user("later")], []);
  return store.steps.list({ organizationId: "acme" }, { cursor, limit: 10 });
}

async function leavesOf(store: Store, kind: EvidenceLeaf["kind"], organizationId: string) {
  const { data } = await store.evidence.list({ organizationId }, wholePage);
  return data.filter((leaf) => leaf.kind === kind).map(({ meta }): unknown => JSON.parse(meta));
}

/** The removals that the leaves record. */
export function removals(store: Store, organizationId = "acme") {
  return leavesOf(store, "activity.removed", organizationId);
}

function erasures(store: Store) {
  return leavesOf(store, "transcripts.erased", "acme");
}

async function contents(store: Store, sessionId: string) {
  const parts = (await store.sessions.transcript("acme", sessionId)) ?? [];
  return parts.map(({ content }) => content);
}

async function kept(store: Store, sessionId: string) {
  const [session, parts, decisions, { data }] = await Promise.all([
    store.sessions.get("acme", sessionId),
    store.sessions.transcript("acme", sessionId),
    store.decisions.list({ organizationId: "acme" }, wholePage),
    store.evidence.list({ organizationId: "acme" }, wholePage),
  ]);
  return { session, parts: parts?.length, decisions, leaves: data.map(({ kind }) => kind) };
}
