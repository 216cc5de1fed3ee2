import type { ApiKey } from "../domain/api-key.ts";
import type { Budget, BudgetCounter, Hold } from "../domain/budget.ts";
import type { Owner } from "../domain/caller.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import type { LeafTemplate } from "../domain/leaf-template.ts";
import type { PolicyDecision } from "../domain/policy-decision.ts";
import type { Session, TranscriptPart } from "../domain/session.ts";
import type { AttemptEnd, AttemptStart, Endpoint, Step, StepOutcome } from "../domain/step.ts";
import type { StoredResponse } from "../domain/stored-response.ts";

/**
 * Where everything governed is kept. A store implements it whole: no method is optional, none is a flag.
 *
 * The verbs are atomic and durable: when the promise resolves, all of the change is on disk, or the verb refused and
 * nothing is. When it rejects, the outcome is unknown, and calling again with the same ids must be safe.
 * Every time is milliseconds since the epoch on the gateway's clock, every amount a safe integer.
 * Content and evidence are bytes: what was written reads back byte-equal.
 * The lock order is one everywhere: key, Session, budgets by (budgetId, subject, periodStart).
 */
export interface Store {
  readonly contract: 1;
  /** Creates or upgrades what the store keeps. Safe on every start, from any number of processes. */
  migrate(): Promise<void>;
  /** Finishes what is queued and closes what the store opened. Safe to call twice. */
  close(): Promise<void>;

  /**
   * Assigns Session and Turn, appends the request's new messages, takes the holds (all or none), and writes the
   * decision, the Step, its first attempt and the leaf. Refuses without writing anything.
   */
  openStep(intent: StepIntent): Promise<StepOpening>;
  /**
   * Ends the Step's running attempt and opens its next one, releasing the old attempt's holds and taking new ones.
   * Rejects with `step_not_found` for no Step of the organization, `invalid_argument` for an attempt that does not run.
   */
  openAttempt(intent: AttemptIntent): Promise<AttemptOpening>;
  /**
   * Writes how a Step ended: reply, attempts, charges against its holds, and the leaf. A Step is settled once:
   * later settlements change nothing and are told so. Rejects as `openAttempt` does.
   */
  settleStep(settlement: StepSettlement): Promise<SettleResult>;
  /** Writes a decision that let nothing happen, and its leaf. */
  recordRefusal(refusal: Refusal): Promise<void>;
  /** Extends a process's lease and records the progress of its open Steps. The first call creates the lease. */
  renewLease(renewal: LeaseRenewal): Promise<void>;
  /**
   * Open Steps that no process will settle: their process's lease lapsed, it has none, or it renewed its lease after
   * the Step opened without naming the Step. Reads only; `settleStep` decides who recovers.
   */
  lapsedSteps(query: {
    readonly at: number;
    readonly limit: number;
  }): Promise<readonly LapsedStep[]>;

  readonly keys: KeyRepository;
  readonly sessions: SessionRepository;
  readonly steps: StepRepository;
  readonly decisions: DecisionRepository;
  readonly budgets: BudgetRepository;
  readonly evidence: EvidenceRepository;
  readonly responses: ResponseRepository;
}

/** Everything `openStep` needs, decided beforehand; only the assignment is left to the store. */
export interface StepIntent {
  readonly stepId: string;
  /** The process that will settle the Step, and how often it had renewed its lease when the Step opened. */
  readonly process: { readonly id: string; readonly renewal: number };
  readonly at: number;
  readonly owner: Owner;
  readonly source: string;
  readonly endpoint: Endpoint;
  readonly stream: boolean;
  readonly requestedModel: string;
  readonly dataClass: string;
  readonly stepNumber: number;
  readonly transcript: TranscriptIntent;
  /** Recorded on the Step and no part of the chain, so that changing them does not break a Session; null without any. */
  readonly instructions: StepInstructions | null;
  readonly decision: PolicyDecision;
  readonly attempt: AttemptStart;
  /** Sorted by (budgetId, subject, periodStart). */
  readonly holds: readonly Hold[];
  /** The `budgets.version()` the holds were computed from. */
  readonly budgetsVersion: number;
  readonly leaf: LeafTemplate;
}

/** Instructions that come with one request and belong to no history. */
export interface StepInstructions {
  /** UTF-8; null where only digests are kept. */
  readonly content: Uint8Array | null;
  readonly contentSalt: Uint8Array;
  readonly contentCommitment: Uint8Array;
}

/** The request's messages as the Session rules of section 3 see them. */
export interface TranscriptIntent {
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** A Session that is a candidate beside the key's 100 most recent: that of the previous response. */
  readonly alsoConsider: string | null;
  /** Ids to use if a new Session or a new Turn is made. */
  readonly newSessionId: string;
  readonly newTurnId: string;
  /** Chain values h[1..n], 32 bytes each, one after the other. */
  readonly chain: Uint8Array;
  /** Each message as JSON text, in chain order; what is new is stored as a JSON array of these. */
  readonly messages: readonly string[];
  /** Position from 1 of the last user message; 0 without one. A new Turn begins when it is new. */
  readonly lastUserMessage: number;
  /** `digest` stores no content. */
  readonly keep: "full" | "digest";
  /** Salt of the commitment to the new content. */
  readonly contentSalt: Uint8Array;
}

/** What `openStep` did: the Step stands on this Session and Turn, or nothing was written and this is why. */
export type StepOpening =
  | {
      readonly opened: true;
      readonly sessionId: string;
      readonly turnId: string;
      /** The Session this Step branched from; null when it continued or created one. */
      readonly branchedFromSessionId: string | null;
    }
  | { readonly opened: false; readonly refusal: OpeningRefusal };

/** Why a Step was not opened. The gateway answers it; the store only says which it was. */
export type OpeningRefusal =
  /** The key was revoked or expired at `at`, or is gone. */
  | { readonly code: "invalid_api_key" }
  /** The named Session or Turn is not the owner's. */
  | { readonly code: "session_not_found" | "turn_not_found" }
  /** The first hold that does not fit. */
  | { readonly code: "budget_exceeded"; readonly hold: Hold }
  /** `budgetsVersion` is not the store's any more: compute the holds anew. */
  | { readonly code: "budgets_changed" };

/** A further attempt of an open Step. */
export interface AttemptIntent {
  readonly organizationId: string;
  readonly stepId: string;
  readonly at: number;
  /** How the running attempt ended, and what it is charged. */
  readonly ended: AttemptSettlement;
  /** The decision on a fallback; null when the same model is tried again. */
  readonly decision: PolicyDecision | null;
  readonly attempt: AttemptStart;
  /** Null keeps the running holds for the next attempt; else they are settled and these are taken, all or none. */
  readonly holds: readonly Hold[] | null;
  readonly leaf: EvidenceLeaf;
}

/** What `openAttempt` did: the next attempt runs, or nothing was written. */
export type AttemptOpening =
  | { readonly opened: true }
  /** The holds do not fit, nothing was written, and the running attempt's holds stay. */
  | { readonly opened: false; readonly hold: Hold }
  /** The Step is settled already, by recovery. */
  | { readonly opened: false; readonly hold: null };

/** How an attempt ended and the amounts its holds become. A request hold always becomes the amount that was held. */
export interface AttemptSettlement extends AttemptEnd {
  readonly number: number;
  /** Nanodollars, 0 where unknown, and tokens. */
  readonly charge: { readonly usd: number; readonly tokens: number };
}

/** How a Step ended, whatever its end: written at once, with its last attempt, its reply and its leaf. */
export interface StepSettlement {
  readonly organizationId: string;
  readonly stepId: string;
  readonly at: number;
  readonly outcome: StepOutcome;
  readonly reason: string | null;
  readonly finishReason: string | null;
  /** The running attempt's end. */
  readonly attempt: AttemptSettlement;
  /** What the client will send back as history, or the partial text of a Step that did not complete; null for none. */
  readonly reply: StepReply | null;
  /** The response to store in the same transaction; null where none is. Written only by the settlement that counts. */
  readonly response: ResponseDraft | null;
  readonly leaf: EvidenceLeaf;
}

/** A response to store, with the whole history it was built on. */
export interface ResponseDraft extends StoredResponse {
  /**
   * All messages before its own, as a JSON array in UTF-8. Kept with it only if the response it continues is gone by
   * then; otherwise the history is read through that response, so that no message is stored twice.
   */
  readonly inherited: Uint8Array;
}

/** What a model answered, with its commitment and its place in the transcript chain. */
export interface StepReply {
  /** A JSON array of messages as UTF-8 bytes; null when only digests are kept. */
  readonly content: Uint8Array | null;
  readonly contentSalt: Uint8Array;
  readonly contentCommitment: Uint8Array;
  /**
   * Chain values after each message of the reply, 32 bytes each. They join the Session if its head is still the one
   * the Step was sent on; empty for a reply that never joins.
   */
  readonly chain: Uint8Array;
}

/** Whether this settlement was the one that counts. */
export interface SettleResult {
  /** False when the Step had been settled before: nothing was written. */
  readonly settled: boolean;
  /** How the Step ended, by this settlement or the earlier one. */
  readonly outcome: StepOutcome;
}

/** A decision that let nothing happen: denied by policy, or stopped by a budget after it was permitted. */
export interface Refusal {
  readonly owner: Owner;
  readonly decision: PolicyDecision;
  readonly leaf: EvidenceLeaf;
}

/** One beat of a process: how long its lease holds, in the gateway's time, and what it is still working on. */
export interface LeaseRenewal {
  readonly processId: string;
  /** Counts up from 1. */
  readonly renewal: number;
  readonly at: number;
  readonly until: number;
  /** Every Step the process still means to settle, with the output tokens it has seen of it. */
  readonly steps: readonly { readonly stepId: string; readonly outputTokens: number }[];
}

/** What settling a Step on behalf of a dead process needs. */
export interface LapsedStep {
  readonly step: Step;
  /** The organization's salt. */
  readonly salt: Uint8Array;
  /** Output tokens its process last recorded; null when it never did. */
  readonly outputTokens: number | null;
}

/** A page of records, and where the next begins; null at the end. */
export interface StorePage<Row> {
  readonly data: readonly Row[];
  readonly nextCursor: string | null;
}

/** Which page: `cursor` is what the page before gave. */
export interface StorePaging {
  readonly cursor: string | null;
  readonly limit: number;
}

/** `null` reads across organizations; a foreign organization's rows are never returned. */
export type Tenant = string | null;

/** A key's secret digest, and until when it works: null for as long as the key. */
export interface KeySecret {
  readonly digest: Uint8Array;
  readonly expiresAt: number | null;
}

/** API keys. Secrets come and go as SHA-256 digests of 32 bytes; the store never sees one. */
export interface KeyRepository {
  /** Writes a key, its secret if it has one, the leaf, and the organization's salt unless it has one. */
  insert(entry: {
    readonly key: ApiKey;
    readonly digest: Uint8Array | null;
    readonly salt: Uint8Array;
    readonly leaf: EvidenceLeaf;
  }): Promise<void>;
  /** The key whose secret has this SHA-256 and has not run out at `at`, live or not, and its organization's salt. */
  findByDigest(
    digest: Uint8Array,
    at: number,
  ): Promise<{ readonly key: ApiKey; readonly salt: Uint8Array } | null>;
  get(organizationId: Tenant, id: string): Promise<ApiKey | null>;
  /** Newest first. */
  list(query: KeyQuery, paging: StorePaging): Promise<StorePage<ApiKey>>;
  /** Changes what is given; null when there is no such key. */
  update(change: {
    readonly organizationId: string;
    readonly id: string;
    readonly patch: KeyPatch;
    readonly leaf: EvidenceLeaf;
  }): Promise<ApiKey | null>;
  /** Gives the key a new secret; the others end at `oldSecretsEnd` unless they end before. False: no such key. */
  rotate(change: {
    readonly organizationId: string;
    readonly id: string;
    readonly digest: Uint8Array;
    readonly prefix: string;
    readonly oldSecretsEnd: number;
    readonly leaf: EvidenceLeaf;
  }): Promise<boolean>;
  /** Notes that keys were used; never moves a time back. */
  touch(
    uses: readonly {
      readonly organizationId: string;
      readonly keyId: string;
      readonly at: number;
    }[],
  ): Promise<void>;
}

/** Which keys to list: those of an organization, or of one of its users. */
export interface KeyQuery {
  readonly organizationId: Tenant;
  readonly userId?: string;
}

/** What may change about a key: its secret, its owner and its id never do. */
export type KeyPatch = Partial<
  Pick<
    ApiKey,
    "label" | "defaultDataClass" | "minimumDataClass" | "models" | "expiresAt" | "revokedAt"
  >
>;

/** Sessions and their transcripts, read by owner. Only `openStep` and `settleStep` write them. */
export interface SessionRepository {
  get(organizationId: Tenant, id: string): Promise<Session | null>;
  /** Most recently updated first. */
  list(query: SessionQuery, paging: StorePaging): Promise<StorePage<Session>>;
  /** The whole history in order, a branch's common part included; null when there is no such Session. */
  transcript(organizationId: Tenant, id: string): Promise<readonly TranscriptPart[] | null>;
  /** Whether the Session is this organization's, user's and key's. */
  isOwned(owner: Owner, sessionId: string): Promise<boolean>;
  /** The Session of a Turn that is this organization's, user's and key's; null otherwise. */
  ofTurn(owner: Owner, turnId: string): Promise<string | null>;
}

/** Which Sessions to list; every given field must match. */
export interface SessionQuery {
  readonly organizationId: Tenant;
  readonly userId?: string;
  readonly keyId?: string;
  readonly source?: string;
}

/** Steps, whatever their end, with every attempt. Only the verbs of the store write them. */
export interface StepRepository {
  get(organizationId: Tenant, id: string): Promise<Step | null>;
  /** Newest first, by when they opened. */
  list(query: StepQuery, paging: StorePaging): Promise<StorePage<Step>>;
  /** What one Step recorded, whatever its end; each part null where there is none or only digests are kept. */
  contents(organizationId: Tenant, id: string): Promise<StepContents | null>;
}

/** The content of one Step as UTF-8 bytes: instructions as text, the others as JSON arrays of messages. */
export interface StepContents {
  readonly instructions: Uint8Array | null;
  /** The messages of the request that were new to its Session. */
  readonly request: Uint8Array | null;
  /** The reply, or the partial text of a Step that did not complete. */
  readonly reply: Uint8Array | null;
}

/** All given fields must match; a list matches any of its values. Attempt fields match the last attempt. */
export interface StepQuery {
  readonly organizationId: Tenant;
  readonly userId?: readonly string[];
  readonly keyId?: readonly string[];
  readonly sessionId?: readonly string[];
  readonly turnId?: readonly string[];
  readonly source?: readonly string[];
  readonly endpoint?: readonly Endpoint[];
  readonly dataClass?: readonly string[];
  readonly decisionId?: readonly string[];
  readonly gateway?: readonly string[];
  readonly vendor?: readonly string[];
  readonly model?: readonly string[];
  readonly connection?: readonly string[];
  readonly host?: readonly string[];
  /** `open` for Steps in flight. */
  readonly outcome?: readonly (StepOutcome | "open")[];
  /** Opened at or after, and before. */
  readonly from?: number;
  readonly to?: number;
}

/** Policy decisions, permits and denials alike. Only the verbs of the store write them. */
export interface DecisionRepository {
  get(organizationId: Tenant, id: string): Promise<PolicyDecision | null>;
  /** Newest first. */
  list(query: DecisionQuery, paging: StorePaging): Promise<StorePage<PolicyDecision>>;
}

/** Which decisions to list, by the time they were made: at or after `from`, before `to`. */
export interface DecisionQuery {
  readonly organizationId: Tenant;
  readonly userId?: readonly string[];
  readonly keyId?: readonly string[];
  readonly effect?: "permit" | "deny";
  readonly from?: number;
  readonly to?: number;
}

/** Budgets created at run time, and the counters of all budgets, declared ones too. */
export interface BudgetRepository {
  /** Counts every change of the budgets below; `openStep` compares it. */
  version(): Promise<number>;
  /** Budgets created at run time. */
  list(): Promise<readonly Budget[]>;
  /** False when the id is taken. */
  insert(budget: Budget, leaf: EvidenceLeaf): Promise<boolean>;
  /** Replaces a budget's scope, limit and mode; its counters stay. False when there is none. */
  update(budget: Budget, leaf: EvidenceLeaf): Promise<boolean>;
  /** Removes the budget; its counters stay as history. False when there is none. */
  remove(id: string, leaf: EvidenceLeaf): Promise<boolean>;
  /** The counters of a budget, newest period first. */
  counters(
    query: { readonly budgetId: string; readonly subject?: string; readonly periodStart?: number },
    paging: StorePaging,
  ): Promise<StorePage<BudgetCounter>>;
}

/** The evidence leaves: one for each thing attested, written in the transaction that did it. */
export interface EvidenceRepository {
  /** An organization's leaves in the order they were written. */
  list(
    query: { readonly organizationId: string },
    paging: StorePaging,
  ): Promise<StorePage<EvidenceLeaf>>;
}

/**
 * Stored responses. Every read takes the owner: organization, user and key that created them. What is another's,
 * deleted, expired at `at` or never was is all the same: null.
 */
export interface ResponseRepository {
  get(owner: Owner, id: string, at: number): Promise<StoredResponse | null>;
  /**
   * The messages of a response's whole conversation, oldest first: JSON arrays in UTF-8, one after the other, ending
   * with its own. Responses it continues count even when they have expired or were deleted since.
   */
  history(owner: Owner, id: string, at: number): Promise<ResponseHistory | null>;
  /**
   * Deletes a response and writes the leaf. What responses that continue it were built on moves into those, and lives
   * and goes with them. False when there is none.
   */
  delete(deletion: {
    readonly owner: Owner;
    readonly id: string;
    readonly at: number;
    readonly leaf: EvidenceLeaf;
  }): Promise<boolean>;
  /**
   * Removes up to `limit` responses that have expired at `at`, oldest expiry first, in the same way but without a leaf;
   * says how many.
   */
  sweep(query: { readonly at: number; readonly limit: number }): Promise<number>;
}

/** A stored response and everything its conversation said up to it. */
export interface ResponseHistory {
  readonly response: StoredResponse;
  readonly messages: readonly Uint8Array[];
}
