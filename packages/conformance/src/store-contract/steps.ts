import { commitContent, type KeyPatch, leafHash, type TargetChoice } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, chainOf, contentOf, hex, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { attemptSettlement } from "./settlement-intent.ts";

const wholePage = { cursor: null, limit: 100 };
const organizationId = "acme";

/** A Step from opening to settlement: reads back every field and repeats every verb. */
export function stepTests(test: ContractTest): void {
  test("reads an open Step back with every field", async ({ store, intents }) => {
    const messages = [user("hello")];
    const droppedFields = { annotations: 2, '__proto "quoted"': 1, "…": 7 };
    const metadata = { ticket: "T-17", "": "\n" };
    const claim = { keySha256: "0a".repeat(32), requestSha256: "b0".repeat(32) };
    const retryOf = intents.id();
    const changed = { stream: true, stepNumber: 3, source: "app", droppedFields, metadata };
    const intent = intents.step(messages, { ...changed, claim, retryOf });
    const { sessionId, turnId } = await expectOpened(store.openStep(intent));
    expect(await store.steps.get(organizationId, intent.stepId)).toEqual({
      ...intents.owner,
      id: intent.stepId,
      keyLabel: "label of key-1",
      source: "app",
      endpoint: "chat_completions",
      stream: true,
      requestedModel: "sim/vendor/echo",
      dataClass: "D1_INTERNAL",
      decisionId: intent.decision.id,
      sessionId,
      turnId,
      stepNumber: 3,
      droppedFields,
      metadata,
      idempotencyKeySha256: claim.keySha256,
      retryOf,
      openedAt: intent.at,
      settledAt: null,
      outcome: null,
      reason: null,
      finishReason: null,
      attempts: [{ ...intent.attempt, end: null }],
      head: hex(chainOf(intents.salt, messages).at(-1)),
      replyHead: null,
    });
    expect(await store.decisions.get(organizationId, intent.decision.id)).toEqual(intent.decision);
  });

  test("reads a settled Step back with its end, its reply's head and its attempt", async ({
    store,
    intents,
  }) => {
    const messages = [user("hello")];
    const reply = [assistant("hi"), assistant("there")];
    const intent = intents.step(messages);
    await expectOpened(store.openStep(intent));
    const settlement = intents.settlement(intent, { reply, reason: "noted" });
    expect(await store.settleStep(settlement)).toEqual({ settled: true, outcome: "completed" });
    const { number: _, charge: __, ...end } = settlement.attempt;
    expect(await store.steps.get(organizationId, intent.stepId)).toMatchObject({
      settledAt: settlement.at,
      outcome: "completed",
      reason: "noted",
      finishReason: "stop",
      attempts: [{ ...intent.attempt, end }],
      replyHead: hex(chainOf(intents.salt, [...messages, ...reply]).at(-1)),
    });
  });

  test("keeps unreported details absent, and nulls null", async ({ store, intents }) => {
    const intent = intents.step([user("hello")], {
      attempt: { ...intents.step([]).attempt, price: null },
    });
    await expectOpened(store.openStep(intent));
    const usage = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };
    const nothing = { host: null, bodySha256: null, providerRequestId: null, providerModel: null };
    const unknown = {
      costNanoUsd: null,
      priceSource: "unknown",
      timeToFirstTokenMs: null,
    } as const;
    await store.settleStep(
      intents.settlement(intent, {
        outcome: "failed",
        finishReason: null,
        attempt: { usage, ...nothing, ...unknown },
      }),
    );
    const step = await store.steps.get(organizationId, intent.stepId);
    expect(step?.attempts[0]?.price).toBeNull();
    expect(step?.attempts[0]?.end).toMatchObject({ ...nothing, ...unknown });
    expect(step?.attempts[0]?.end?.usage).toStrictEqual(usage);
  });

  test("records a decision once, even if another Step names it", async ({ store, intents }) => {
    const intent = intents.step([user("a")]);
    await expectOpened(store.openStep(intent));
    const { decision } = intent;
    const other = intents.step([user("b"), user("c")], { decision });
    await expectOpened(store.openStep(other));
    const decisions = await store.decisions.list({ organizationId }, { cursor: null, limit: 9 });
    expect(decisions.data.map(({ id }) => id)).toEqual([decision.id]);
  });

  test("ends the running attempt when another opens, and records its decision", async ({
    store,
    intents,
  }) => {
    const intent = intents.step([user("hello")]);
    await expectOpened(store.openStep(intent));
    const decision = intents.decision({ firstDecisionId: intent.decision.id });
    const further = intents.attempt(intent, { decision });
    expect(await store.openAttempt(further)).toEqual({ opened: true });
    const { number: _, charge: __, ...end } = further.ended;
    const step = await store.steps.get(organizationId, intent.stepId);
    expect(step?.attempts).toEqual([
      { ...intent.attempt, end },
      { ...further.attempt, end: null },
    ]);
    expect(await store.decisions.get(organizationId, decision.id)).toEqual(decision);
    await store.settleStep(intents.settlement(intent, { attempt: attemptSettlement(2) }));
    expect(await store.openAttempt(intents.attempt(intent))).toEqual({ opened: false, hold: null });
  });

  test("keeps why the model of a decision was chosen", async ({ store, intents }) => {
    const choice: TargetChoice = {
      requested: "fast",
      virtual: "best/any/fast",
      by: "latency",
      latencyMs: 120,
      passedOver: [{ model: "one/a/x", reason: "breaker_open", decisionId: null }],
    };
    const intent = intents.step([user("hello")]);
    const opening = { ...intent.decision, choice };
    await expectOpened(store.openStep({ ...intent, decision: opening }));
    const further = intents.decision({ firstDecisionId: opening.id, choice });
    await store.openAttempt(intents.attempt(intent, { decision: further }));
    const refusal = intents.refusal({ choice });
    await store.recordRefusal(refusal);
    for (const decision of [opening, further, refusal.decision])
      expect(await store.decisions.get(organizationId, decision.id)).toEqual(decision);
  });

  test("settles a Step once, with the first settlement", async ({ store, intents }) => {
    const intent = intents.step([user("hello")]);
    await expectOpened(store.openStep(intent));
    const outcomes = ["completed", "failed", "cancelled", "interrupted"] as const;
    const results = await Promise.all(
      outcomes.map((outcome) => store.settleStep(intents.settlement(intent, { outcome }))),
    );
    const won = results.filter(({ settled }) => settled);
    expect(won).toHaveLength(1);
    for (const { outcome } of results) expect(outcome).toBe(won[0]?.outcome);
    const leaves = await store.evidence.list({ organizationId }, wholePage);
    expect(leaves.data.filter(({ kind }) => kind === "step.settled")).toHaveLength(1);
  });

  test("changes nothing when a write is repeated with the same ids", async ({ store, intents }) => {
    const intent = intents.step([user("hello")], { holds: [intents.hold()] });
    const first = await store.openStep(intent);
    expect(await store.openStep(intent)).toEqual(first);
    const further = intents.attempt(intent, { holds: [intents.hold({ amount: 50 })] });
    await store.openAttempt(further);
    expect(await store.openAttempt(further)).toEqual({ opened: true });
    const refusal = intents.refusal();
    await store.recordRefusal(refusal);
    await store.recordRefusal(refusal);
    const counters = await store.budgets.counters({ budgetId: "budget" }, wholePage);
    expect(counters.data).toMatchObject([{ settled: 60, held: 50 }]);
    expect((await store.sessions.list({ organizationId }, wholePage)).data).toHaveLength(1);
    expect((await store.steps.list({ organizationId }, wholePage)).data).toHaveLength(1);
    expect((await store.decisions.list({ organizationId }, wholePage)).data).toHaveLength(2);
    const leaves = await store.evidence.list({ organizationId }, wholePage);
    expect(leaves.data.map(({ kind }) => kind)).toEqual([
      "key.created",
      "step.opened",
      "attempt.opened",
      "decision",
    ]);
  });

  test("records only the decision and the leaf of a refusal", async ({ store, intents }) => {
    const refusal = intents.refusal();
    await store.recordRefusal(refusal);
    expect(await store.decisions.get(organizationId, refusal.decision.id)).toEqual(
      refusal.decision,
    );
    const leaves = await store.evidence.list({ organizationId }, wholePage);
    expect(leaves.data.at(-1)).toEqual({ ...refusal.leaf, hash: expect.anything() });
    expect(hex(leaves.data.at(-1)?.hash)).toBe(hex(refusal.leaf.hash));
    expect((await store.steps.list({ organizationId }, wholePage)).data).toEqual([]);
    expect((await store.sessions.list({ organizationId }, wholePage)).data).toEqual([]);
  });

  test("attests the assignment in the leaf of an opened Step", async ({ store, intents }) => {
    const intent = intents.step([user("hello")]);
    const { sessionId, turnId } = await expectOpened(store.openStep(intent));
    const leaves = await store.evidence.list({ organizationId }, wholePage);
    const leaf = leaves.data.at(-1);
    const commitment = commitContent(intent.transcript.contentSalt, contentOf([user("hello")]));
    expect(leaf?.id).toBe(intent.leaf.id);
    expect(leaf?.at).toBe(intent.leaf.at);
    expect(leaf?.meta).toBe(
      `{"assignment":{"branchedFromSessionId":null,"commonLength":0,"contentCommitment":"${hex(commitment)}","sessionId":"${sessionId}","turnId":"${turnId}"},"stepId":"${intent.stepId}"}`,
    );
    expect(hex(leaf?.hash)).toBe(hex(leafHash(leaf?.meta ?? "")));
  });

  test("refuses a Step if its key is not live or not the owner's", async ({ store, intents }) => {
    const refusal = { opened: false, refusal: { code: "invalid_api_key" } };
    for (const owner of [{ keyId: "unknown" }, { userId: "other" }, { organizationId: "other" }])
      expect(await store.openStep(intents.withOwner(owner).step([user("x")]))).toEqual(refusal);
    const at = intents.now();
    const change = (patch: KeyPatch) =>
      store.keys.change({ organizationId, id: "key-1" }, () => ({
        patch,
        leaf: intents.leaf("key.revoked"),
      }));
    await change({ revokedAt: at });
    const before = intents.step([user("before")], { at: at - 1, keyVersion: 1 });
    await expectOpened(store.openStep(before));
    expect(await store.openStep(intents.step([user("at")], { at }))).toEqual(refusal);
    await change({ revokedAt: null, expiresAt: at });
    expect(await store.openStep(intents.step([user("expired")], { at }))).toEqual(refusal);
    expect((await store.steps.list({ organizationId }, wholePage)).data).toHaveLength(1);
  });

  test("refuses a Step if its key changed since it was read", async ({ store, intents }) => {
    const refusal = { opened: false, refusal: { code: "key_changed" } };
    const step = (keyVersion: number) => intents.step([user("x")], { keyVersion });
    const decided = step(0);
    const change = { patch: { models: ["a/b/c"] }, leaf: intents.leaf("key.updated") };
    await store.keys.change({ organizationId, id: "key-1" }, () => change);
    expect(await store.openStep(decided)).toEqual(refusal);
    await expectOpened(store.openStep(step(1)));
    // Recording the last use doesn't change its version.
    await store.keys.touch([{ organizationId, keyId: "key-1", at: intents.now() }]);
    await expectOpened(store.openStep(step(1)));
    expect(await store.openStep(step(2))).toEqual(refusal);
    expect((await store.steps.list({ organizationId }, wholePage)).data).toHaveLength(2);
  });

  test("rejects a settlement or attempt of an unknown Step", async ({ store, intents }) => {
    const intent = intents.step([user("hello")]);
    await expect(store.settleStep(intents.settlement(intent))).rejects.toMatchObject({
      code: "step_not_found",
    });
    await expect(store.openAttempt(intents.attempt(intent))).rejects.toMatchObject({
      code: "step_not_found",
    });
  });

  test("rejects the end of an attempt that isn't running", async ({ store, intents }) => {
    const intent = intents.step([user("hello")]);
    await expectOpened(store.openStep(intent));
    const settlement = intents.settlement(intent, { attempt: attemptSettlement(2) });
    await expect(store.settleStep(settlement)).rejects.toMatchObject({ code: "invalid_argument" });
    expect((await store.steps.get(organizationId, intent.stepId))?.settledAt).toBeNull();
  });
}
