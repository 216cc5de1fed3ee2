import { createHash } from "node:crypto";
import {
  type AttemptIntent,
  type AttemptSettlement,
  type ConversationIntent,
  type EvidenceLeaf,
  type Hold,
  type LeafKind,
  leafHash,
  type PolicyDecision,
  type StepSettlement,
  type Store,
} from "@tollgate/core/store";

/** The owner of all these tests. */
export const owner = { organizationId: "acme", userId: "ada", keyId: "key" };

const at = Date.UTC(2026, 0, 5);

/** Writes the key that the Steps of these tests belong to. */
export function insertKey(store: Store): Promise<void> {
  const key = {
    ...owner,
    id: owner.keyId,
    label: "a key",
    prefix: "tg_abcd",
    defaultDataClass: "D1_INTERNAL",
    minimumDataClass: "D0_PUBLIC",
    models: null,
    aliases: null,
    leadingSystem: null,
    createdAt: at,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    version: 0,
  };
  const leaf = leafOf("key.created", "key");
  return store.keys.insert({ key, digest: digestOf("secret"), salt: digestOf("salt"), leaf });
}

/** The intent of a Step. All its ids derive from the Step's. */
export function stepIntent(
  stepId: string,
  holds: readonly Hold[] = [],
  text = stepId,
): ConversationIntent {
  const message = JSON.stringify({ role: "user", content: text });
  const decision = decisionOf(stepId);
  return {
    stepId,
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
      previousSessionId: null,
      newSessionId: `session of ${stepId}`,
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
    attempt: {
      number: 1,
      decisionId: decision.id,
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
    },
    holds,
    budgetsVersion: 0,
    leaf: {
      id: `opening of ${stepId}`,
      organizationId: owner.organizationId,
      kind: "step.opened",
      at,
      before: '{"assignment":',
      after: "}",
    },
  };
}

/** The second attempt of such a Step, with other holds, after the first failed. */
export function attemptIntent(stepId: string, holds: readonly Hold[]): AttemptIntent {
  const { attempt } = stepIntent(stepId);
  return {
    organizationId: owner.organizationId,
    stepId,
    at,
    ended: { ...attemptEnd, outcome: "failed", reason: "upstream_error" },
    attempt: { ...attempt, number: 2 },
    decision: null,
    holds,
    leaf: leafOf("attempt.opened", stepId),
  };
}

/** The settlement of such a Step, completed with a reply. */
export function stepSettlement(stepId: string): StepSettlement {
  const content = Buffer.from(`[{"role":"assistant","content":"answer to ${stepId}"}]`);
  return {
    organizationId: owner.organizationId,
    stepId,
    at,
    outcome: "completed",
    reason: null,
    finishReason: "stop",
    attempt: attemptEnd,
    reply: {
      content,
      contentSalt: digestOf("reply"),
      contentCommitment: digestOf(content),
      chain: digestOf(stepId),
    },
    reasoning: null,
    response: null,
    claim: null,
    leaf: leafOf("step.settled", stepId),
  };
}

/** A hold of 10 tokens on the tests' budget. */
export function hold(limit: number): Hold {
  const counter = { budgetId: "budget", subject: "", periodStart: 0 };
  return { ...counter, unit: "tokens", mode: "hard", limit, amount: 10 };
}

/** A hold of one request on a pace of requests. */
export function paceHold(): Hold {
  return { ...hold(2_000_000), unit: "requests_pace", amount: 1_000, floor: 1_000_000 };
}

const attemptEnd: AttemptSettlement = {
  number: 1,
  outcome: "completed",
  reason: null,
  host: "upstream.example",
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

function decisionOf(id: string): PolicyDecision {
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
}

export function leafOf(kind: LeafKind, id: string): EvidenceLeaf {
  const meta = JSON.stringify({ id, kind });
  return {
    id: `${kind} ${id}`,
    organizationId: owner.organizationId,
    kind,
    at,
    meta,
    hash: leafHash(meta),
  };
}

export function digestOf(data: string | Uint8Array): Uint8Array {
  return createHash("sha256").update(data).digest();
}
