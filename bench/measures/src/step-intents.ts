import { createHash } from "node:crypto";
import {
  type AttemptSettlement,
  type AttemptStart,
  type Hold,
  type LeafKind,
  leafHash,
  type Owner,
  type PolicyDecision,
  type StepIntent,
  type StepSettlement,
} from "@tollgate/core/store";

/** The organization of all rows in a measurement: the worst case for indexes by organization. */
export const organizationId = "acme";

/** The first question of a conversation. */
const question = "How do tides come about, and why are there two of them a day? ".repeat(4);
const answer = "The moon pulls the near side more than the centre, and the far side less. ".repeat(
  8,
);

/** The intent of a Step that begins a Session. All ids derive from the id of the Step. */
export function stepIntent(
  stepId: string,
  owner: Owner,
  at: number,
  holds: readonly Hold[] = [],
): StepIntent {
  const message = JSON.stringify({ role: "user", content: `${question}${stepId}` });
  const decision = decisionOf(`decision-${stepId}`, owner, at);
  return {
    stepId,
    process: { id: "process", renewal: 1 },
    at,
    owner,
    keyVersion: 0,
    source: "api",
    endpoint: "chat_completions",
    stream: false,
    requestedModel: "sim/vendor/model-1",
    dataClass: "D1_INTERNAL",
    stepNumber: 0,
    droppedFields: {},
    metadata: {},
    transcript: {
      sessionId: null,
      turnId: null,
      previousSessionId: null,
      newSessionId: `session-${stepId}`,
      chain: digestOf(message),
      messages: [message],
      lastUserMessage: 1,
      keep: "full",
      contentSalt: digestOf(stepId),
    },
    instructions: null,
    claim: null,
    retryOf: null,
    decision,
    attempt: attemptStart(decision, at),
    holds,
    budgetsVersion: 0,
    leaf: {
      id: `opening-${stepId}`,
      organizationId,
      kind: "step.opened",
      at,
      before: '{"assignment":',
      after: `,"decision":${JSON.stringify(decision)}}`,
    },
  };
}

/** The settlement of such a Step, completed with a reply. */
export function stepSettlement(stepId: string, at: number): StepSettlement {
  const content = Buffer.from(JSON.stringify([{ role: "assistant", content: answer }]));
  const meta = JSON.stringify({ attempt: attemptEnd, kind: "step.settled", stepId });
  return {
    organizationId,
    stepId,
    at,
    outcome: "completed",
    reason: null,
    finishReason: "stop",
    attempt: attemptEnd,
    reply: {
      content,
      contentSalt: digestOf("salt"),
      contentCommitment: digestOf(content),
      chain: digestOf(stepId),
    },
    reasoning: null,
    response: null,
    claim: null,
    leaf: { ...leafPlace("step.settled", stepId, at), meta, hash: leafHash(meta) },
  };
}

export function decisionOf(id: string, owner: Owner, at: number): PolicyDecision {
  return {
    id,
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
      model: "model-1",
      listed: true,
      connection: "platform",
      tools: false,
      images: false,
      structuredOutput: false,
      serviceTier: "default",
      estimatedInputTokens: 70,
      estimatedOutputTokens: 400,
      estimatedCostNanoUsd: 120_000,
    },
    policyVersion: "1",
    firstDecisionId: null,
    refusal: null,
  };
}

export function attemptStart(decision: PolicyDecision, at: number): AttemptStart {
  return {
    number: 1,
    decisionId: decision.id,
    gateway: "sim",
    vendor: "vendor",
    model: "model-1",
    connection: "platform",
    price: null,
    serviceTiers: ["default"],
    estimatedInputTokens: 70,
    estimatedOutputTokens: 400,
    outputCapFrom: "model",
    reasons: false,
    startedAt: at,
  };
}

export const attemptEnd: AttemptSettlement = {
  number: 1,
  outcome: "completed",
  reason: null,
  host: "upstream.example",
  bodySha256: createHash("sha256").update(question).digest("hex"),
  providerRequestId: "req_0123456789abcdef",
  providerModel: "model-1-2026-01-01",
  usage: { promptTokens: 70, completionTokens: 160, totalTokens: 230 },
  usageBasis: "reported",
  costBasis: "reported",
  reportedCostNanoUsd: null,
  serviceTier: null,
  costNanoUsd: null,
  priceSource: "unknown",
  durationMs: 1_234,
  timeToFirstTokenMs: 210,
  toolCalls: 0,
  error: null,
  charge: { usd: 0, tokens: 230 },
};

function leafPlace(kind: LeafKind, stepId: string, at: number) {
  return { id: `${kind}-${stepId}`, organizationId, kind, at };
}

function digestOf(data: string | Uint8Array): Uint8Array {
  return createHash("sha256").update(data).digest();
}
