import type {
  AttemptSettlement,
  AttemptStart,
  EvidenceLeaf,
  Hold,
  LeafKind,
  PolicyDecision,
  StepIntent,
  StepSettlement,
} from "@tollgate/core/store";

const owner = { organizationId: "acme", userId: "ada", keyId: "key" };
const at = Date.UTC(2026, 0, 5);

const attempt: AttemptStart = {
  number: 1,
  decisionId: "decision",
  gateway: "sim",
  vendor: "vendor",
  model: "echo",
  connection: "platform",
  price: null,
  serviceTiers: ["default"],
  estimatedInputTokens: 10,
  estimatedOutputTokens: 10,
  outputCapFrom: "model",
  reasons: false,
  startedAt: at,
};

const ended: AttemptSettlement = {
  number: 1,
  outcome: "completed",
  reason: null,
  host: null,
  bodySha256: null,
  providerRequestId: null,
  providerModel: null,
  usage: { promptTokens: 4, completionTokens: 3, totalTokens: 7 },
  usageBasis: "reported",
  costBasis: "reported",
  reportedCostNanoUsd: null,
  serviceTier: null,
  costNanoUsd: null,
  priceSource: "unknown",
  durationMs: 1,
  timeToFirstTokenMs: null,
  toolCalls: 0,
  error: null,
  charge: { usd: 0, tokens: 7 },
};

const decision: PolicyDecision = {
  id: "decision",
  at,
  effect: "permit",
  rules: ["default"],
  facts: {
    organization: owner.organizationId,
    user: owner.userId,
    key: owner.keyId,
    source: "api",
    dataClass: "D1_INTERNAL",
    gateway: "sim",
    vendor: "vendor",
    model: "echo",
    listed: true,
    connection: "platform",
    tools: false,
    images: false,
    structuredOutput: false,
    serviceTier: "default",
    estimatedInputTokens: 10,
    estimatedOutputTokens: 10,
    estimatedCostNanoUsd: null,
  },
  policyVersion: "1",
  firstDecisionId: null,
  refusal: null,
};

/** A Step of two messages, whose chain values are 32 times the digit of their position. */
export function stepIntent(holds: readonly Hold[] = []): StepIntent {
  return {
    stepId: "step",
    process: { id: "process", renewal: 1 },
    at,
    owner,
    keyVersion: 0,
    source: "api",
    endpoint: "chat_completions",
    stream: false,
    requestedModel: "sim/vendor/echo",
    dataClass: "D1_INTERNAL",
    stepNumber: 0,
    droppedFields: {},
    metadata: {},
    transcript: {
      sessionId: null,
      turnId: null,
      alsoConsider: null,
      newSessionId: "new session",
      newTurnId: "new turn",
      chain: chainOf(1, 2),
      messages: ['{"role":"user"}', '{"role":"user","content":"more"}'],
      lastUserMessage: 2,
      keep: "full",
      contentSalt: chainOf(9),
    },
    instructions: null,
    decision,
    attempt,
    holds,
    budgetsVersion: 0,
    leaf: { ...leafOf("step.opened"), before: '{"assignment":', after: "}" },
  };
}

/** Its settlement, with a reply of one message. */
export function stepSettlement(chain: Uint8Array = chainOf(3)): StepSettlement {
  const content = Buffer.from("[{}]");
  const reply = { content, contentSalt: chainOf(9), contentCommitment: chainOf(8), chain };
  return {
    organizationId: owner.organizationId,
    stepId: "step",
    at: at + 1,
    outcome: "completed",
    reason: null,
    finishReason: "stop",
    attempt: ended,
    reply,
    reasoning: null,
    response: null,
    leaf: leafOf("step.settled"),
  };
}

/** A hard hold of 10 tokens. */
export function hold(budgetId: string, limit: number): Hold {
  const counter = { budgetId, subject: "", periodStart: 0 };
  return { ...counter, unit: "tokens", mode: "hard", limit, amount: 10 };
}

/** Chain values, each of one digit. */
export function chainOf(...digits: readonly number[]): Uint8Array {
  return Buffer.concat(digits.map((digit) => Buffer.alloc(32, digit)));
}

function leafOf(kind: LeafKind): EvidenceLeaf {
  const { organizationId } = owner;
  return { id: kind, organizationId, kind, at, meta: "{}", hash: chainOf(7) };
}
