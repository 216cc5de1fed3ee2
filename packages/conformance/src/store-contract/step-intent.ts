import type {
  AttemptStart,
  ConversationIntent,
  Owner,
  PolicyDecision,
  StepIntent,
  TranscriptIntent,
} from "@tollgate/core/store";
import { chainOf, sha256, type TestMessage } from "./chain.ts";

/** Overrides of a Step's intent and of its transcript. */
export type StepOverrides = Partial<Omit<StepIntent, "transcript">> & {
  readonly transcript?: Partial<TranscriptIntent>;
};

/** A source of increasing ids and times. */
export interface Source {
  id(): string;
  now(): number;
}

export function decisionFor(owner: Owner, source: Source): PolicyDecision {
  return {
    id: source.id(),
    at: source.now(),
    effect: "permit",
    rules: ["default"],
    reason: "because",
    obligations: { fallbacks: ["sim/vendor/other"], maxOutputTokens: 100 },
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
      store: true,
      tools: true,
      images: false,
      structuredOutput: false,
      serviceTier: "default",
      estimatedInputTokens: 12,
      estimatedOutputTokens: 100,
      estimatedCostNanoUsd: 1_234,
    },
    policyVersion: "version-1",
    firstDecisionId: null,
    refusal: null,
  };
}

interface StepParts {
  readonly messages: readonly TestMessage[];
  readonly decision: PolicyDecision;
  readonly overrides: StepOverrides;
}

export function stepFor(
  owner: Owner,
  source: Source,
  salt: Uint8Array,
  parts: StepParts,
): ConversationIntent {
  const { messages, decision, overrides } = parts;
  const { transcript, ...rest } = overrides;
  // Usually a Step has the id and the time of its decision. A store may optimize for that, but must accept others.
  const isUsual = messages.length % 2 === 1;
  const stepId = isUsual ? decision.id : source.id();
  const at = overrides.at ?? source.now();
  return {
    stepId,
    process: { id: "process-1", renewal: 1 },
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
    instructions: null,
    claim: null,
    retryOf: null,
    decision: isUsual ? { ...decision, at } : decision,
    attempt: attemptStart(decision.id, at),
    holds: [],
    budgetsVersion: 0,
    leaf: {
      id: source.id(),
      organizationId: owner.organizationId,
      kind: "step.opened",
      at,
      before: `{"assignment":`,
      after: `,"stepId":${JSON.stringify(stepId)}}`,
    },
    ...rest,
    transcript: {
      sessionId: null,
      turnId: null,
      previousSessionId: null,
      newSessionId: source.id(),
      chain: Buffer.concat(chainOf(salt, messages)),
      messages: messages.map(({ json }) => json),
      lastUserMessage: messages.findLastIndex(({ role }) => role === "user") + 1,
      keep: "full",
      contentSalt: sha256("content of ", stepId),
      ...transcript,
    },
  };
}

function attemptStart(decisionId: string, startedAt: number): AttemptStart {
  return {
    number: 1,
    decisionId,
    gateway: "sim",
    vendor: "vendor",
    model: "echo",
    connection: "platform",
    price: { input: 250, output: 2_000, cachedInput: 25, source: "custom" },
    serviceTiers: ["default"],
    estimatedInputTokens: 12,
    estimatedOutputTokens: 100,
    outputCapFrom: "model",
    reasons: false,
    startedAt,
  };
}
