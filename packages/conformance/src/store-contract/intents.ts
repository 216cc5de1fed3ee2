import {
  type ApiKey,
  type AttemptIntent,
  type ConversationIntent,
  type EvidenceLeaf,
  type Hold,
  type LeafKind,
  leafHash,
  type Owner,
  type PolicyDecision,
  type Refusal,
  type ResponseDraft,
  type StepIntent,
  type StepSettlement,
  type Store,
} from "@tollgate/core/store";
import { sha256, type TestMessage } from "./chain.ts";
import { type ResponseOverrides, responseFor } from "./response-draft.ts";
import { attemptSettlement, type SettlementOverrides, settlementFor } from "./settlement-intent.ts";
import { decisionFor, type Source, type StepOverrides, stepFor } from "./step-intent.ts";

type KeyEntry = Parameters<Store["keys"]["insert"]>[0];

/**
 * Builds the arguments of a store's verbs for one owner. Ids and times count up, so a failure looks the same each time.
 * Two builders for two organizations create equal ids, as two organizations may.
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
  step(messages: readonly TestMessage[], overrides?: StepOverrides): ConversationIntent;
  /** An embeddings call, which has no transcript. */
  call(overrides?: Partial<StepIntent>): StepIntent;
  attempt(step: StepIntent, overrides?: Partial<AttemptIntent>): AttemptIntent;
  settlement(step: StepIntent, overrides?: SettlementOverrides): StepSettlement;
  response(step: ConversationIntent, overrides?: ResponseOverrides): ResponseDraft;
  refusal(overrides?: Partial<PolicyDecision>): Refusal;
  /** The same ids and times for another owner. */
  withOwner(owner: Partial<Owner>): Intents;
}

/** The time at which every test starts. */
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
    call: (overrides = {}) => ({
      ...stepFor(owner, source, salt, { messages: [], decision: decision(), overrides: {} }),
      endpoint: "embeddings",
      stepNumber: null,
      transcript: null,
      ...overrides,
    }),
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
    response: (step, overrides = {}) => responseFor(step, source, overrides),
    refusal: (overrides = {}) => ({
      owner,
      decision: decision({ effect: "deny", reason: "not allowed", ...overrides }),
      leaf: leaf("decision"),
    }),
    withOwner: (other) => intentsFor({ ...owner, ...other }, source),
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
    aliases: null,
    leadingSystem: null,
    createdAt: source.now(),
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    version: 0,
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
