import { describe, expect, it } from "vitest";
import type {
  AttemptSettlement,
  ConversationIntent,
  StepSettlement,
} from "../contracts/step-verbs.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import { fillLeaf, leafHash } from "../domain/leaf-template.ts";
import type { DecisionRefusal, PolicyDecision } from "../domain/policy-decision.ts";
import { stableJson } from "../kernel/stable-json.ts";
import {
  activityRemovedLeaf,
  attemptLeaf,
  leafTextsOf,
  openedLeaf,
  refusalLeaf,
  settledLeaf,
  transcriptsErasedLeaf,
} from "./leaves.ts";

const owner = { organizationId: "acme", userId: "u", keyId: "k" };
const decision: PolicyDecision = {
  id: "d",
  at: 1,
  effect: "permit",
  rules: ["b", "a"],
  policyVersion: "v",
  firstDecisionId: null,
  refusal: null,
  facts: {
    organization: "acme",
    user: "u",
    key: "k",
    source: "api",
    dataClass: "D1_INTERNAL",
    gateway: "g",
    vendor: "v",
    model: "m",
    listed: true,
    connection: "platform",
    tools: false,
    images: false,
    structuredOutput: false,
    serviceTier: "default",
    estimatedInputTokens: 1,
    estimatedOutputTokens: 2,
    estimatedCostNanoUsd: null,
  },
};
const attempt: ConversationIntent["attempt"] = {
  number: 1,
  decisionId: "d",
  gateway: "g",
  vendor: "v",
  model: "m",
  connection: "platform",
  price: {
    output: 2,
    input: 1,
    cachedInput: 1,
    source: "catalog",
    version: "2026",
    request: 1,
    reasoning: 3,
    imageOutput: 5,
    cacheWrite5m: 2,
    cacheWrite1h: 3,
    audioInput: 9,
    tiers: {
      priority: { output: 4, input: 2, longPrompt: [{ above: 9, output: 8, input: 4 }] },
      flex: { output: 1, input: 1, request: 0 },
    },
    longPrompt: [{ above: 200_000, output: 4, input: 2, cachedInput: 1 }],
  },
  serviceTiers: ["priority", "default"],
  estimatedInputTokens: 1,
  estimatedOutputTokens: 2,
  outputCapFrom: "model",
  reasons: false,
  startedAt: 1,
};
const end: AttemptSettlement = {
  number: 1,
  outcome: "completed",
  reason: null,
  host: "upstream.test",
  bodySha256: "00",
  providerRequestId: null,
  providerModel: null,
  usage: {
    promptTokens: 1,
    completionTokens: 2,
    totalTokens: 3,
    reasoningTokens: 1,
    cachedTokens: 1,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    imageOutputTokens: 1,
    audioInputTokens: 0,
  },
  usageBasis: "reported",
  costBasis: "estimated",
  reportedCostNanoUsd: 2,
  serviceTier: "priority",
  costNanoUsd: 3,
  priceSource: "custom",
  durationMs: 1,
  timeToFirstTokenMs: null,
  toolCalls: 0,
  error: null,
  charge: { usd: 3, tokens: 3 },
};
const hold = {
  unit: "usd" as const,
  mode: "hard" as const,
  subject: "",
  periodStart: 0,
  limit: 9,
  budgetId: "b",
  amount: 1,
};
const intent: Omit<ConversationIntent, "leaf"> = {
  stepId: "s",
  process: { id: "p", renewal: 1 },
  at: 1,
  owner,
  keyVersion: 0,
  source: "api",
  endpoint: "chat_completions",
  stream: false,
  requestedModel: "g/v/m",
  dataClass: "D1_INTERNAL",
  stepNumber: 0,
  droppedFields: {},
  metadata: {},
  transcript: {
    sessionId: null,
    turnId: null,
    previousSessionId: null,
    newSessionId: "n",
    chain: new Uint8Array(64),
    messages: [],
    lastUserMessage: 0,
    keep: "full",
    contentSalt: new Uint8Array(32),
  },
  instructions: null,
  claim: null,
  retryOf: null,
  decision,
  attempt,
  holds: [hold],
  budgetsVersion: 0,
};
const settlement: Omit<StepSettlement, "leaf"> = {
  organizationId: "acme",
  stepId: "s",
  at: 2,
  outcome: "completed",
  reason: null,
  finishReason: "stop",
  attempt: end,
  reply: {
    content: null,
    contentSalt: new Uint8Array(32),
    contentCommitment: new Uint8Array(32),
    chain: new Uint8Array(32),
  },
  reasoning: null,
  response: null,
  claim: null,
};
const assignment = {
  sessionId: "n",
  turnId: "t",
  branchedFromSessionId: null,
  commonLength: 1,
  contentCommitment: new Uint8Array(32),
};

// Leaves attest these facts under their own names.
const { decisionId: _decision, startedAt: _started, ...attemptFacts } = attempt;
const decisionFacts = { effect: "permit", first: null, id: "d", policy: "v", rules: ["b", "a"] };
const endFacts = {
  basis: "reported",
  bodySha256: "00",
  costBasis: "estimated",
  costNanoUsd: 3,
  host: "upstream.test",
  number: 1,
  outcome: "completed",
  priceSource: "custom",
  reason: null,
  reportedCostNanoUsd: 2,
  serviceTier: "priority",
  usage: end.usage,
};

const refusals: readonly DecisionRefusal[] = [
  { by: "budget", unit: "usd", subject: "k", needed: 2, left: 1, budgetId: "b" },
  { by: "rate_limit", unit: "requests", subject: "k", needed: 1, left: 0, rateLimitId: "r" },
  { param: "model", by: "price" },
  { by: "connection" },
];

describe("evidence leaves", () => {
  it.each(refusals)("attest what refused a permitted request: $by", (refusal) => {
    const { meta } = refusalLeaf("l", { owner, decision: { ...decision, refusal } });
    expect(JSON.parse(meta)).toMatchObject({ decision: { effect: "permit", refusal } });
  });

  it.each<readonly [string, () => EvidenceLeaf]>([
    ["an opened Step", () => fillLeaf(openedLeaf("l", intent), assignment)],
    [
      "a further attempt",
      () =>
        attemptLeaf("l", {
          organizationId: "acme",
          stepId: "s",
          at: 2,
          ended: end,
          decision,
          attempt,
          holds: [hold],
        }),
    ],
    ["a settled Step", () => settledLeaf("l", settlement)],
    ["a refusal", () => refusalLeaf("l", { owner, decision })],
    ...refusals.map(
      (refusal) =>
        [
          `a refusal by ${refusal.by}`,
          () => refusalLeaf("l", { owner, decision: { ...decision, refusal } }),
        ] as const,
    ),
  ])("write %s as canonical JSON, hashed as a leaf of RFC 6962", (_name, create) => {
    const leaf = create();
    expect(leaf.meta).toBe(stableJson(JSON.parse(leaf.meta)));
    expect(Buffer.from(leaf.hash)).toEqual(leafHash(leaf.meta));
  });

  it("attest every fact of an opened Step", () => {
    const chain = Uint8Array.from({ length: 96 }, (_, byte) => Math.trunc(byte / 32));
    const choice = {
      by: "weight" as const,
      virtual: "pool/any/fast",
      requested: "fast",
      latencyMs: null,
      passedOver: [{ model: "g/v/other", reason: "refused" as const, decisionId: "d0" }],
    };
    const opened = openedLeaf("l", {
      ...intent,
      stepNumber: 3,
      transcript: { ...intent.transcript, chain },
      instructions: committed(0xab),
      decision: { ...decision, choice, firstDecisionId: "d0" },
    });
    expect(facts(fillLeaf(opened, assignment))).toEqual({
      assignment: { ...assignment, contentCommitment: hexOf(0) },
      attempt: attemptFacts,
      chain: { head: hexOf(2), length: 3 },
      dataClass: "D1_INTERNAL",
      decision: {
        ...decisionFacts,
        choice: {
          by: "weight",
          virtual: "pool/any/fast",
          requested: "fast",
          passedOver: [{ model: "g/v/other", reason: "refused", decision: "d0" }],
        },
        first: "d0",
      },
      endpoint: "chat_completions",
      holds: [hold],
      kind: "step.opened",
      instructions: hexOf(0xab),
      key: "k",
      requestedModel: "g/v/m",
      source: "api",
      step: "s",
      stepNumber: 3,
      stream: false,
      user: "u",
    });
  });

  it("attest every fact of a further attempt", () => {
    const further = { organizationId: "acme", stepId: "s", at: 2, attempt, holds: [hold] };
    const ended = { ...end, error: committed(0xef) };
    expect(facts(attemptLeaf("l", { ...further, ended, decision }))).toEqual({
      attempt: attemptFacts,
      decision: decisionFacts,
      ended: { ...endFacts, error: hexOf(0xef) },
      kind: "attempt.opened",
      holds: [hold],
      step: "s",
    });
    expect(
      facts(attemptLeaf("l", { ...further, ended: end, decision: null, holds: null })),
    ).toMatchObject({ decision: null, holds: null });
  });

  it("attest every fact of a settled Step", () => {
    expect(facts(settledLeaf("l", { ...settlement, reasoning: committed(0xcd) }))).toEqual({
      attempt: endFacts,
      finishReason: "stop",
      kind: "step.settled",
      outcome: "completed",
      reason: null,
      reasoning: hexOf(0xcd),
      reply: { commitment: hexOf(0), head: hexOf(0) },
      response: null,
      step: "s",
    });
    expect(facts(settledLeaf("l", { ...settlement, reply: null }))).toMatchObject({ reply: null });
  });

  it("attest every fact of a refusal", () => {
    expect(facts(refusalLeaf("l", { owner, decision }))).toEqual({
      dataClass: "D1_INTERNAL",
      decision: decisionFacts,
      key: "k",
      kind: "decision",
      model: "g/v/m",
      user: "u",
    });
  });

  it("attest what a sweep removed, in order", () => {
    const sweep = { from: "", at: 100, keep: 40, limit: 9 };
    const removed = activityRemovedLeaf("l", sweep, { organizationId: "acme", count: 5 });
    expect(facts(removed)).toEqual({ before: 60, count: 5, kind: "activity.removed" });
    const sessionIds = ["s2", "s1"];
    const erased = transcriptsErasedLeaf("l", sweep, { organizationId: "acme", sessionIds });
    expect(facts(erased)).toEqual({
      before: 60,
      kind: "transcripts.erased",
      sessions: ["s1", "s2"],
    });
  });
});

/** Content whose commitment repeats one byte. */
function committed(byte: number) {
  const contentCommitment = new Uint8Array(32).fill(byte);
  return { content: null, contentSalt: new Uint8Array(32), contentCommitment };
}

function hexOf(byte: number): string {
  return byte.toString(16).padStart(2, "0").repeat(32);
}

/** The facts that a leaf attests, and its kind. */
function facts({ id, organizationId, kind, at, meta }: EvidenceLeaf): object {
  const { version, ...members } = JSON.parse(meta);
  const head = { id: members.id, organization: members.organization, kind: members.kind };
  expect({ ...head, at: members.at, version }).toEqual({
    id,
    organization: organizationId,
    kind,
    at,
    version: 1,
  });
  const names = new Set(["id", "organization", "at"]);
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.has(name)));
}

/** Copies of a value with one change each: another value of a member, also deep inside. Everything else is the same. */
function changed<Value>(value: Value): readonly Value[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const isPlain = typeof member !== "object" || member === null;
    const others = isPlain ? [`other ${name}`, 77, null, undefined] : changed(member);
    return others.map((other) =>
      Object.assign(Array.isArray(value) ? [] : {}, value, { [name]: other }),
    );
  });
}

describe("the texts of an opened Step's leaf", () => {
  const known = leafTextsOf(intent);
  const { transcript: _, holds: __, instructions: ___, owner: ____, ...facts } = intent;
  const intents = [
    ...changed(facts).map((other) => ({ ...intent, ...other })),
    ...changed(owner).map((other) => ({ ...intent, owner: other })),
    { ...intent, transcript: null, stepNumber: null },
    { ...intent, holds: [] },
    { ...intent, decision: { ...decision, rules: ["b", "a"] } },
    { ...intent, decision: { ...decision, rules: ["b"] } },
  ];

  it("are used only for Steps whose leaves have them", () => {
    let uses = 0;
    for (const other of intents) {
      const texts = leafTextsOf(other, known);
      if (texts === known) uses++;
      expect(openedLeaf("l", other, texts)).toEqual(openedLeaf("l", other));
    }
    expect(uses).toBeGreaterThan(20);
    expect(intents.length).toBeGreaterThan(2 * uses);
  });

  it("may contain the text that marks a gap", () => {
    const requestedModel = "0.5/0.25/0.125";
    const { after } = openedLeaf("l", { ...intent, requestedModel });
    const { after: usual } = openedLeaf("l", intent);
    expect(after).toBe(usual.replace(intent.requestedModel, requestedModel));
  });
});
