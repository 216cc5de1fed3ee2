import type { Hold } from "../domain/budget.ts";
import type { Owner } from "../domain/caller.ts";
import type { CorrectionDraft } from "../domain/correction.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import type { LeafTemplate } from "../domain/leaf-template.ts";
import type { PolicyDecision } from "../domain/policy-decision.ts";
import type { SessionFacts } from "../domain/session.ts";
import type {
  AttemptEnd,
  AttemptStart,
  DroppedFields,
  EndpointName,
  Metadata,
  Step,
  StepOutcome,
} from "../domain/step.ts";
import type { StoredResponse } from "../domain/stored-response.ts";

/** Everything `openStep` needs. The store adds only the assignment. */
export interface StepIntent {
  readonly stepId: string;
  /** The process that will settle the Step, and how often it had renewed its lease when the Step opened. */
  readonly process: { readonly id: string; readonly renewal: number };
  readonly at: number;
  readonly owner: Owner;
  /** The version of the key that identified the owner. */
  readonly keyVersion: number;
  readonly source: string;
  readonly endpoint: EndpointName;
  readonly stream: boolean;
  readonly requestedModel: string;
  readonly dataClass: string;
  readonly stepNumber: number | null;
  readonly droppedFields: DroppedFields;
  readonly metadata: Metadata;
  /** Null for a call without Session, Turn and step number: the store records none of its content. */
  readonly transcript: TranscriptIntent | null;
  /** Recorded on the Step but not part of the chain, so changed instructions don't break a Session. Null without any. */
  readonly instructions: CommittedContent | null;
  /** The claim on the request's `Idempotency-Key`; null without one. */
  readonly claim: ClaimIntent | null;
  /** The Step that it probably repeats; null for none. */
  readonly retryOf: string | null;
  readonly decision: PolicyDecision;
  readonly attempt: AttemptStart;
  /** Sorted by (budgetId, subject, periodStart). */
  readonly holds: readonly Hold[];
  /** The `budgets.version()` the holds were computed from. */
  readonly budgetsVersion: number;
  readonly leaf: LeafTemplate;
}

/** The intent of a Step that belongs to a Session. */
export interface ConversationIntent extends StepIntent {
  readonly transcript: TranscriptIntent;
}

/** A claim on an idempotency key, for the API key and endpoint of its Step. Both are SHA-256 in hex. */
export interface ClaimIntent {
  readonly keySha256: string;
  /** Of everything that makes two requests the same. */
  readonly requestSha256: string;
}

/** An earlier request's claim on the same idempotency key. */
export interface EarlierClaim {
  /**
   * `mismatch`: another request made it. Otherwise what became of its Step: it is open, or was interrupted, or is complete
   * and its answer is kept or not.
   */
  readonly found: "mismatch" | "in_progress" | "interrupted" | "not_kept" | "kept";
  readonly stepId: string;
  readonly decisionId: string;
  readonly dataClass: string;
  /** When its Step opened. */
  readonly openedAt: number;
  /** The answer, if `found` is `kept`; null otherwise. */
  readonly answer: KeptAnswer | null;
}

/** A completed answer as the client got it. */
export interface KeptAnswer {
  /** The canonical id of the model that answered. The policy must still permit it before a repeat gets the answer. */
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  /** UTF-8. */
  readonly body: Uint8Array;
}

/**
 * The new state of a settled Step's claim. `freed` removes it, so that a repeat runs as a new request. Every other claim
 * answers repeats until `expiresAt`.
 */
export type ClaimEnding =
  | { readonly state: "freed" }
  | { readonly state: "interrupted" | "not_kept"; readonly expiresAt: number }
  | { readonly state: "kept"; readonly expiresAt: number; readonly answer: KeptAnswer };

/** Content of a Step that isn't part of the history, such as a request's instructions or a provider's error text. */
export interface CommittedContent {
  /** UTF-8. Null if only digests are kept. */
  readonly content: Uint8Array | null;
  readonly contentSalt: Uint8Array;
  readonly contentCommitment: Uint8Array;
}

/** A list of texts, which may be written only when they are requested. */
export interface MessageTexts {
  readonly length: number;
  /** The texts from an index on. */
  slice(start: number): readonly string[];
}

/** The request's messages as the rules that find its Session use them. */
export interface TranscriptIntent {
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** The Session of the previous response. It is a candidate in addition to the key's 100 most recent Sessions. */
  readonly previousSessionId: string | null;
  /** The id to use if a new Session is made. A new Turn gets the id of the Step. */
  readonly newSessionId: string;
  /** Chain values h[1..n], 32 bytes each, one after the other. */
  readonly chain: Uint8Array;
  /** Each message as JSON text, in chain order. New messages are stored as a JSON array of these. */
  readonly messages: MessageTexts;
  /** Position of the last user message, counted from 1; 0 without one. If that message is new, a new Turn begins. */
  readonly lastUserMessage: number;
  /** `digest` stores no content. */
  readonly keep: "full" | "digest";
  /** Salt of the commitment to the new content. */
  readonly contentSalt: Uint8Array;
  /**
   * The Session that `sessions.find` returned earlier for this request, or null if it found none. The store refuses the Step
   * if it would now continue or branch from another Session, or if the Session's data classes have changed. Absent if
   * nothing looked it up.
   */
  readonly expectedSession?: SessionFacts | null;
}

/** The input of the rules that determine the Session of a request. */
export interface SessionLookup extends Pick<StepIntent, "owner" | "source"> {
  readonly transcript: Pick<
    TranscriptIntent,
    "sessionId" | "turnId" | "previousSessionId" | "chain"
  >;
}

/** A Session that a request continues or branches from. */
export interface SessionMatch extends SessionFacts {
  /** How many of its messages the request begins with. */
  readonly commonLength: number;
}

/** The result of `openStep`: the Step's Session and Turn, or the reason why nothing was written. */
export type OpenStepResult =
  | {
      readonly opened: true;
      /** Both null for a Step without a transcript. */
      readonly sessionId: string | null;
      readonly turnId: string | null;
      /** The Session this Step branched from. Null if it continued or created one. */
      readonly branchedFromSessionId: string | null;
      /**
       * The values of its paces after its holds were taken, in the order of the holds. Absent if it holds no pace. May be
       * later values, or absent, if an earlier call already opened the Step.
       */
      readonly paces?: readonly number[];
    }
  | { readonly opened: false; readonly refusal: OpenStepRefusal };

/** Why a Step was not opened. The gateway turns this into an error for the client. */
export type OpenStepRefusal =
  /** The key is revoked or expired at `at`, or doesn't exist. */
  | { readonly code: "invalid_api_key" }
  /** The key is valid, but has changed since it was read. */
  | { readonly code: "key_changed" }
  /** An earlier request has claimed the idempotency key. */
  | ({ readonly code: "claimed" } & EarlierClaim)
  /** The Step would no longer continue or branch from `expectedSession`: find the Session again. */
  | { readonly code: "session_changed" }
  /** The named Session or Turn doesn't belong to the owner. */
  | { readonly code: "session_not_found" | "turn_not_found" }
  /** The first hold that does not fit. */
  | ({ readonly code: "budget_exceeded" } & RefusedHold)
  /** `budgetsVersion` is outdated: compute the holds again. */
  | { readonly code: "budgets_changed" };

/** A hold that does not fit. */
export interface RefusedHold {
  readonly hold: Hold;
  /** The amount its counter had left: the hold's limit minus settled and held amounts. Only that of a pace may be below 0. */
  readonly left: number;
}

/** A further attempt of an open Step. */
export interface AttemptIntent {
  readonly organizationId: string;
  readonly stepId: string;
  readonly at: number;
  /** How the running attempt ended, and its charge. */
  readonly ended: AttemptSettlement;
  /** The decision on a fallback; null for a retry of the same model. */
  readonly decision: PolicyDecision | null;
  readonly attempt: AttemptStart;
  /** The holds to take, all or none, once the running ones are settled. Null keeps the running ones for the next attempt. */
  readonly holds: readonly Hold[] | null;
  readonly leaf: EvidenceLeaf;
}

/** The result of `openAttempt`. If it opened no attempt, nothing was written. */
export type OpenAttemptResult =
  | { readonly opened: true }
  /** The holds don't fit. The running attempt keeps its holds. */
  | ({ readonly opened: false } & RefusedHold)
  /** Recovery has already settled the Step. */
  | { readonly opened: false; readonly hold: null };

/** How an attempt ended, and the charge that its holds become. A hold in requests always becomes the amount held. */
export interface AttemptSettlement extends Omit<AttemptEnd, "error"> {
  readonly number: number;
  /** The provider's error text. Null if it gave none. */
  readonly error: CommittedContent | null;
  /** Nanodollars, or 0 if unknown, and tokens. */
  readonly charge: { readonly usd: number; readonly tokens: number };
}

/** How a Step ended, completed or not. Written together with its last attempt, its reply and its leaf. */
export interface StepSettlement {
  readonly organizationId: string;
  readonly stepId: string;
  readonly at: number;
  readonly outcome: StepOutcome;
  readonly reason: string | null;
  readonly finishReason: string | null;
  /** The running attempt's end. */
  readonly attempt: AttemptSettlement;
  /** The messages that the client will send back as history, or the partial text of a Step that did not complete, or null. */
  readonly reply: StepReply | null;
  /** The reasoning shown to the client, as UTF-8 text, which isn't part of the history. Null for none. */
  readonly reasoning: CommittedContent | null;
  /** The response to store in the same transaction; null for none. Not written if the Step was settled before. */
  readonly response: ResponseDraft | null;
  /** The new state of the Step's claim on an idempotency key, in the same transaction; null if it has none. */
  readonly claim: ClaimEnding | null;
  readonly leaf: EvidenceLeaf;
}

/** A response to store, with the whole history it was built on. */
export interface ResponseDraft extends StoredResponse {
  /** The messages it adds to the conversation, first input, then output, as a JSON array in UTF-8. */
  readonly messages: Uint8Array;
  /**
   * All messages before its own, as a JSON array in UTF-8. Stored only if the response it continues is gone by then.
   * Otherwise the history is read through that response, and no message is stored twice.
   */
  readonly inherited: Uint8Array;
}

/** A model's answer, with its commitment and its place in the transcript chain. */
export interface StepReply {
  /** A JSON array of messages as UTF-8 bytes. Null if only digests are kept. */
  readonly content: Uint8Array | null;
  readonly contentSalt: Uint8Array;
  readonly contentCommitment: Uint8Array;
  /**
   * The chain value after each message of the reply, 32 bytes each. They are appended to the Session if its head hasn't
   * changed since the Step opened. Empty for a reply that is never appended.
   */
  readonly chain: Uint8Array;
}

/** The result of `settleStep`. */
export interface SettleStepResult {
  /** False if the Step was settled before. Then nothing was written. */
  readonly settled: boolean;
  /** How the Step ended, according to this settlement or the earlier one. */
  readonly outcome: StepOutcome;
}

/** A correction of the usage and cost of one attempt of a settled Step. */
export interface CorrectionIntent {
  readonly organizationId: string;
  readonly stepId: string;
  readonly correction: CorrectionDraft;
  readonly leaf: EvidenceLeaf;
}

/** The decision on a refused request. The policy denied it, or it permitted it and `decision.refusal` tells why not. */
export interface Refusal {
  readonly owner: Owner;
  readonly decision: PolicyDecision;
  readonly leaf: EvidenceLeaf;
}

/**
 * The clock that leases use. `gateway` is the time passed in the calls, for gateways that got a clock, as in tests. `store`
 * is the time of the database, which several machines can share: a machine whose own clock is ahead then doesn't take the
 * others for dead. A store that only one machine uses takes the time of the calls for both, since its processes and its
 * database read the same clock.
 */
export type LeaseClock = "gateway" | "store";

/** A renewal of a process's lease, with the progress of its open Steps. */
export interface LeaseRenewal {
  readonly processId: string;
  /** Counts up from 1. */
  readonly renewal: number;
  readonly at: number;
  /** When the lease ends on the gateway's clock. On the store's, it ends `until - at` after it is written. */
  readonly until: number;
  readonly clock: LeaseClock;
  /** Every Step that the process will still settle, with the output tokens to charge if it dies, or null for all it holds. */
  readonly steps: readonly {
    readonly organizationId: string;
    readonly stepId: string;
    readonly outputTokens: number | null;
  }[];
}

/** A page of the Steps of dead processes. */
export interface LapsedSteps {
  readonly steps: readonly LapsedStep[];
  /** An error for each Step that can't be read. */
  readonly damaged: readonly unknown[];
  /** `after` of the next page; null if this is the last one. */
  readonly next: number | null;
}

/** The data needed to settle a Step of a dead process. */
export interface LapsedStep {
  readonly step: Step;
  /** The output tokens that its process last recorded. Null if it recorded none, or null. */
  readonly outputTokens: number | null;
}
