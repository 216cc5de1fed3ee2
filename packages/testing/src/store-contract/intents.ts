import {
  type ApiKey,
  type AttemptIntent,
  type AttemptSettlement,
  type AttemptStart,
  commitContent,
  type EvidenceLeaf,
  type Hold,
  type LeafKind,
  leafHash,
  type Owner,
  type PolicyDecision,
  type Refusal,
  type StepIntent,
  type StepReply,
  type StepSettlement,
  type Store,
  type TranscriptIntent,
} from "@tollgate/core/store";
import { chainOf, contentOf, sha256, type TestMessage } from "./chain.ts";

type KeyEntry = Parameters<Store["keys"]["insert"]>[0];

/** Overrides of a Step's intent; those of its transcript stand beside them. */
export type StepOverrides = Partial<Omit<StepIntent, "transcript">> & {
  readonly transcript?: Partial<TranscriptIntent>;
};

export type SettlementOverrides = Partial<Omit<StepSettlement, "reply" | "attempt">> & {
  readonly attempt?: Partial<AttemptSettlement>;
  /** The messages of the reply; null for none. */
  readonly reply?: readonly TestMessage[] | null;
  /** A reply that never joins has no chain. */
  readonly joins?: boolean;
};

/**
 * Builds what a store's verbs take, for one owner. Ids and times count up, so that a failure reads the same each time;
 * two builders for two organizations make equal ids, as two organizations may.
 */
export interface Intents {
  readonly owner: Owner;
  readonly salt: Uint8Array;
  id(): string;
  now(): number;
  leaf(kind: LeafKind): EvidenceLeaf;
  decision(overrides?: Partial<PolicyDecision>): PolicyDecision;
  key(overrides?: Partial<ApiKey>, digest?: Uint8Array | null): KeyEntry;
  hold(overrides?: Partial<Hold>): Hold;
  step(messages: readonly TestMessage[], overrides?: StepOverrides): StepIntent;
  attempt(step: StepIntent, overrides?: Partial<AttemptIntent>): AttemptIntent;
  settlement(step: StepIntent, overrides?: SettlementOverrides): StepSettlement;
  refusal(): Refusal;
  /** The same ids and times for another owner. */
  as(owner: Partial<Owner>): Intents;
}

interface Source {
  id(): string;
  now(): number;
}

/** When every test begins. */
const start = Date.UTC(2026, 0, 5, 12);

export function createIntents(organizationId = "acme"): Intents {
  let ids = 0;
  let seconds = 0;
  const source = {
    id: () => `00000000-0000-7000-8000-${String(++ids).padStart(12, "0")}`,
    now: () => start + ++seconds * 1_000,
  };
  return intentsFor({ organizationId, userId: "ada", keyId: "key-1" }, source);
}

function intentsFor(owner: Owner, source: Source): Intents {
  const salt = sha256("salt of ", owner.organizationId);
  const leaf = (kind: LeafKind): EvidenceLeaf => {
    const id = source.id();
    const meta = JSON.stringify({ id, kind });
    const { organizationId } = owner;
    return { id, organizationId, kind, at: source.now(), meta, hash: leafHash(meta) };
  };
  const decision = (overrides: Partial<PolicyDecision> = {}): PolicyDecision => ({
    ...decisionFor(owner, source),
    ...overrides,
  });
  return {
    owner,
    salt,
    ...source,
    leaf,
    decision,
    key: (overrides = {}, digest = null) => ({
      key: keyFor(owner, source, overrides),
      digest,
      salt,
      leaf: leaf("key.created"),
    }),
    hold: (overrides = {}) => ({ ...plainHold, ...overrides }),
    step: (messages, overrides = {}) =>
      stepFor(owner, source, salt, { messages, decision: decision(), overrides }),
    attempt: (step, overrides = {}) => ({
      organizationId: owner.organizationId,
      stepId: step.stepId,
      at: source.now(),
      ended: attemptSettlement(step.attempt.number, { outcome: "failed", reason: "upstream" }),
      decision: null,
      attempt: { ...step.attempt, number: step.attempt.number + 1, startedAt: source.now() },
      holds: null,
      leaf: leaf("attempt.opened"),
      ...overrides,
    }),
    settlement: (step, overrides = {}) =>
      settlementFor(step, salt, { at: source.now(), leaf: leaf("step.settled"), overrides }),
    refusal: () => ({
      owner,
      decision: decision({ effect: "deny", reason: "not allowed" }),
      leaf: leaf("decision"),
    }),
    as: (other) => intentsFor({ ...owner, ...other }, source),
  };
}

function keyFor(owner: Owner, source: Source, overrides: Partial<ApiKey>): ApiKey {
  return {
    id: owner.keyId,
    organizationId: owner.organizationId,
    userId: owner.userId,
    label: `label of ${owner.keyId}`,
    prefix: "tg_abcd",
    defaultDataClass: "D1_INTERNAL",
    minimumDataClass: "D0_PUBLIC",
    models: null,
    createdAt: source.now(),
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    ...overrides,
  };
}

const plainHold: Hold = {
  budgetId: "budget",
  subject: "",
  periodStart: 0,
  unit: "usd",
  mode: "hard",
  limit: 1_000,
  amount: 100,
};

function decisionFor(owner: Owner, source: Source): PolicyDecision {
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
      connection: "platform",
      store: true,
      tools: true,
      images: false,
      structuredOutput: false,
      estimatedInputTokens: 12,
      estimatedOutputTokens: 100,
      estimatedCostNanoUsd: 1_234,
    },
    policyVersion: "version-1",
    firstDecisionId: null,
  };
}

interface StepParts {
  readonly messages: readonly TestMessage[];
  readonly decision: PolicyDecision;
  readonly overrides: StepOverrides;
}

function stepFor(owner: Owner, source: Source, salt: Uint8Array, parts: StepParts): StepIntent {
  const { messages, decision, overrides } = parts;
  const { transcript, ...rest } = overrides;
  const stepId = source.id();
  const at = source.now();
  return {
    stepId,
    process: { id: "process-1", renewal: 1 },
    at,
    owner,
    source: "api",
    endpoint: "chat_completions",
    stream: false,
    requestedModel: "sim/vendor/echo",
    dataClass: "D1_INTERNAL",
    stepNumber: 0,
    decision,
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
      alsoConsider: null,
      newSessionId: source.id(),
      newTurnId: source.id(),
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
    estimatedInputTokens: 12,
    estimatedOutputTokens: 100,
    startedAt,
  };
}

/** How an attempt ended that cost 60 nanodollars and 7 tokens. */
export function attemptSettlement(
  number: number,
  overrides: Partial<AttemptSettlement> = {},
): AttemptSettlement {
  return {
    number,
    outcome: "completed",
    reason: null,
    host: "upstream.example",
    bodySha256: "ab".repeat(32),
    providerRequestId: "request-1",
    providerModel: "echo-1",
    usage: { promptTokens: 4, completionTokens: 3, totalTokens: 7, cachedTokens: 0 },
    usageBasis: "reported",
    costNanoUsd: 60,
    priceSource: "custom",
    durationMs: 120,
    timeToFirstTokenMs: 30,
    toolCalls: 1,
    charge: { usd: 60, tokens: 7 },
    ...overrides,
  };
}

interface SettlementParts {
  readonly at: number;
  readonly leaf: EvidenceLeaf;
  readonly overrides: SettlementOverrides;
}

function settlementFor(step: StepIntent, salt: Uint8Array, parts: SettlementParts): StepSettlement {
  const { attempt, reply = null, joins = true, ...rest } = parts.overrides;
  const outcome = rest.outcome ?? "completed";
  return {
    organizationId: step.owner.organizationId,
    stepId: step.stepId,
    at: parts.at,
    outcome,
    reason: null,
    finishReason: "stop",
    attempt: attemptSettlement(step.attempt.number, { outcome, ...attempt }),
    leaf: parts.leaf,
    ...rest,
    reply: reply && replyFor(step, salt, { messages: reply, joins }),
  };
}

function replyFor(
  step: StepIntent,
  salt: Uint8Array,
  { messages, joins }: { readonly messages: readonly TestMessage[]; readonly joins: boolean },
): StepReply {
  let head: Uint8Array = step.transcript.chain.slice(-32);
  const chain = messages.map(({ json }) => {
    head = sha256(head, sha256(salt, json));
    return head;
  });
  const content = contentOf(messages);
  const contentSalt = sha256("reply of ", step.stepId);
  return {
    content: step.transcript.keep === "full" ? content : null,
    contentSalt,
    contentCommitment: commitContent(contentSalt, content),
    chain: joins ? Buffer.concat(chain) : new Uint8Array(),
  };
}
