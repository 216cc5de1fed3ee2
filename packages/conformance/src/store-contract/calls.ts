import { commitContent, leafHash, type StepIntent, type Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { countersOf } from "./budgets.ts";
import { assistant, hex, sha256, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { correctionFor } from "./corrections.ts";
import { attemptSettlement } from "./settlement-intent.ts";

const organizationId = "acme";
const wholePage = { cursor: null, limit: 100 };
const day = 86_400_000;

/** Calls without Session, Turn and step number. Everything but the transcript is as for any other Step. */
export function callTests(test: ContractTest): void {
  test("opens a call without Session and Turn, twice alike, and lists it with other Steps", async ({
    store,
    intents,
  }) => {
    const claim = { keySha256: "0a".repeat(32), requestSha256: "b0".repeat(32) };
    const call = intents.call({ claim });
    const opened = { opened: true, sessionId: null, turnId: null, branchedFromSessionId: null };
    expect(await store.openStep(call)).toEqual(opened);
    expect(await store.openStep(call)).toEqual(opened);
    const step = intents.step([user("hello")]);
    const { sessionId } = await expectOpened(store.openStep(step));
    expect(await store.steps.get(organizationId, call.stepId)).toEqual({
      ...intents.owner,
      id: call.stepId,
      keyLabel: "label of key-1",
      source: "api",
      endpoint: "embeddings",
      stream: false,
      requestedModel: "sim/vendor/echo",
      dataClass: "D1_INTERNAL",
      decisionId: call.decision.id,
      sessionId: null,
      turnId: null,
      stepNumber: null,
      droppedFields: {},
      metadata: {},
      idempotencyKeySha256: claim.keySha256,
      retryOf: null,
      openedAt: call.at,
      settledAt: null,
      outcome: null,
      reason: null,
      finishReason: null,
      attempts: [{ ...call.attempt, end: null }],
      head: null,
      replyHead: null,
    });
    expect(await store.decisions.get(organizationId, call.decision.id)).toEqual(call.decision);
    expect(await idsOf(store, {})).toEqual([step.stepId, call.stepId]);
    expect(await idsOf(store, { endpoint: ["embeddings"] })).toEqual([call.stepId]);
    expect(await idsOf(store, { sessionId: [sessionId] })).toEqual([step.stepId]);
    const sessions = await store.sessions.list({ organizationId }, wholePage);
    expect(sessions.data.map(({ id }) => id)).toEqual([sessionId]);
    expect(await store.openStep({ ...intents.call({ claim }), at: call.at })).toMatchObject({
      refusal: { code: "claimed", found: "in_progress", stepId: call.stepId },
    });
  });

  test("attests that a call was assigned to nothing", async ({ store, intents }) => {
    const call = intents.call();
    await store.openStep(call);
    const { data } = await store.evidence.list({ organizationId }, wholePage);
    const meta = `{"assignment":null,"stepId":"${call.stepId}"}`;
    expect(data.at(-1)).toMatchObject({ id: call.leaf.id, kind: "step.opened", meta });
    expect(hex(data.at(-1)?.hash)).toBe(hex(leafHash(meta)));
  });

  test("charges a call to its holds, in sums and in corrections", async ({ store, intents }) => {
    const call = intents.call({ holds: [intents.hold()] });
    await store.openStep(call);
    const refused = await store.openStep(intents.call({ holds: [intents.hold({ amount: 950 })] }));
    expect(refused).toMatchObject({
      opened: false,
      refusal: { code: "budget_exceeded", left: 900 },
    });
    const settlement = intents.settlement(call);
    expect(await store.settleStep(settlement)).toEqual({ settled: true, outcome: "completed" });
    expect(await store.settleStep(settlement)).toEqual({ settled: false, outcome: "completed" });
    expect(await countersOf(store, "budget")).toMatchObject([{ settled: 60, held: 0 }]);
    const { groups } = await store.steps.summarize(
      { organizationId, by: ["session", "model"] },
      wholePage,
    );
    expect(groups).toMatchObject([
      {
        values: [null, "sim/vendor/echo"],
        sums: { steps: 1, attempts: 1, totalTokens: 7, costNanoUsd: 60 },
      },
    ]);
    const { steps } = await store.usage.steps({ organizationId }, wholePage);
    expect(steps).toMatchObject([
      { outcome: "completed", attempts: [{ end: { costNanoUsd: 60 } }] },
    ]);
    expect(await store.correct(correctionFor(intents, call, { costNanoUsd: 50 }))).toBe(true);
    expect(await countersOf(store, "budget")).toMatchObject([{ settled: 50, held: 0 }]);
    expect((await store.budgets.reconcile({ limit: 10 })).drift).toEqual([]);
  });

  test("keeps no content of a call", async ({ store, intents }) => {
    const call = intents.call();
    await store.openStep(call);
    const [salt, content] = [sha256("salt"), Buffer.from("quotes the input")];
    const error = { content, contentSalt: salt, contentCommitment: commitContent(salt, content) };
    const failed = { outcome: "failed", reason: "status_503", error } as const;
    await store.openAttempt(intents.attempt(call, { ended: attemptSettlement(1, failed) }));
    const attempt = attemptSettlement(2);
    for (const reply of [[assistant("a vector")], []])
      await expect(
        store.settleStep(intents.settlement(call, { attempt, reply })),
      ).rejects.toMatchObject({ code: "invalid_argument" });
    await store.settleStep(intents.settlement(call, { attempt }));
    const step = await store.steps.get(organizationId, call.stepId);
    const commitment = hex(error.contentCommitment);
    expect(step?.attempts[0]?.end?.error).toEqual({ message: null, commitment });
    expect(await store.steps.contents(organizationId, call.stepId)).toEqual({
      instructions: null,
      request: null,
      reply: null,
      reasoning: null,
      withheld: [],
    });
  });

  test("recovers a call of a lost process, and removes it when it is old", async ({
    store,
    intents,
  }) => {
    const call = intents.call({ holds: [intents.hold()] });
    await store.openStep(call);
    const query = { at: call.at, clock: "gateway", after: null, limit: 9 } as const;
    const { steps: lapsed } = await store.lapsedSteps(query);
    expect(lapsed).toMatchObject([{ step: { id: call.stepId, sessionId: null } }]);
    const lost = { outcome: "interrupted", reason: "process_lost", finishReason: null } as const;
    await store.settleStep(intents.settlement(call, lost));
    expect((await store.lapsedSteps(query)).steps).toEqual([]);
    const sweep = { from: "", at: call.at + 2 * day, keep: day, limit: 9, unfolded: new Map() };
    const leaf = () => intents.leaf("activity.removed");
    expect(await store.steps.sweep({ ...sweep, leaf })).toEqual({ removed: 1, next: null });
    expect(await idsOf(store, {})).toEqual([]);
    expect(await countersOf(store, "budget")).toMatchObject([{ settled: 60, held: 0 }]);
  });
}

type Filter = Partial<Parameters<Store["steps"]["list"]>[0]>;

async function idsOf(store: Store, filter: Filter): Promise<readonly StepIntent["stepId"][]> {
  const { data } = await store.steps.list({ organizationId, ...filter }, wholePage);
  return data.map(({ id }) => id);
}
