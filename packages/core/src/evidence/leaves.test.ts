import { describe, expect, it } from "vitest";
import type { AttemptSettlement, StepIntent, StepSettlement } from "../contracts/step-verbs.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import { fillLeaf, leafHash } from "../domain/leaf-template.ts";
import type { DecisionRefusal, PolicyDecision } from "../domain/policy-decision.ts";
import { stableJson } from "../kernel/stable-json.ts";
import { attemptLeaf, openedLeaf, refusalLeaf, settledLeaf } from "./leaves.ts";

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
const attempt: StepIntent["attempt"] = {
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
const intent: Omit<StepIntent, "leaf"> = {
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
    newTurnId: "t",
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

const refusals: readonly DecisionRefusal[] = [
  { by: "budget", unit: "usd", subject: "k", needed: 2, left: 1, budgetId: "b" },
  { param: "model", by: "price" },
  { by: "connection" },
];

describe("evidence leaves", () => {
  it.each(refusals)("attest what refused a permitted request: $by", (refusal) => {
    const { meta } = refusalLeaf("l", { owner, decision: { ...decision, refusal } });
    expect(JSON.parse(meta)).toMatchObject({ decision: { effect: "permit", refusal } });
  });

  it.each<readonly [string, EvidenceLeaf]>([
    ["an opened Step", fillLeaf(openedLeaf("l", intent), assignment)],
    [
      "a further attempt",
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
    ["a settled Step", settledLeaf("l", settlement)],
    ["a refusal", refusalLeaf("l", { owner, decision })],
    ...refusals.map(
      (refusal) =>
        [
          `a refusal by ${refusal.by}`,
          refusalLeaf("l", { owner, decision: { ...decision, refusal } }),
        ] as const,
    ),
  ])("write %s as canonical JSON, hashed as a leaf of RFC 6962", (_name, leaf) => {
    expect(leaf.meta).toBe(stableJson(JSON.parse(leaf.meta)));
    expect(Buffer.from(leaf.hash)).toEqual(leafHash(leaf.meta));
  });
});
