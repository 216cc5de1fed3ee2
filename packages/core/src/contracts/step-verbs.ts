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

/** Everything `openStep` needs. Only the assignment is left to the store. */
export interface StepIntent {
  readonly stepId: string;
  /** The process that will settle the Step, and how often it had renewed its lease when the Step opened. */
  readonly process: { readonly id: string; readonly renewal: number };
  readonly at: number;
  readonly owner: Owner;
  /** The version of the key that the owner was found by. */
  readonly keyVersion: number;
  readonly source: string;
  readonly endpoint: EndpointName;
  readonly stream: boolean;
  readonly requestedModel: string;
  readonly dataClass: string;
  readonly stepNumber: number;
  readonly droppedFields: DroppedFields;
  readonly metadata: Metadata;
  readonly transcript: TranscriptIntent;
  /** Recorded on the Step and no part of the chain, so that changing them does not break a Session; null without any. */
  readonly instructions: CommittedContent | null;
  readonly decision: PolicyDecision;
  readonly attempt: AttemptStart;
  /** Sorted by (budgetId, subject, periodStart). */
  readonly holds: readonly Hold[];
  /** The `budgets.version()` the holds were computed from. */
  readonly budgetsVersion: number;
  readonly leaf: LeafTemplate;
}

/** Content of a Step that belongs to no history: the instructions of a request, or a provider's error text. */
export interface CommittedContent {
  /** UTF-8; null where only digests are kept. */
  readonly content: Uint8Array | null;
  readonly contentSalt: Uint8Array;
  readonly contentCommitment: Uint8Array;
}

/** Texts in their order, which may be written only when they are asked for. */
export interface MessageTexts {
  readonly length: number;
  /** Those from a place on, counted from 0. */
  slice(start: number): readonly string[];
}

/** The request's messages as the Session rules of section 3 see them. */
export interface TranscriptIntent {
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** The Session of the previous response, a candidate in addition to the key's 100 most recent ones. */
  readonly previousSessionId: string | null;
  /** Ids to use if a new Session or a new Turn is made. */
  readonly newSessionId: string;
  readonly newTurnId: string;
  /** Chain values h[1..n], 32 bytes each, one after the other. */
  readonly chain: Uint8Array;
  /** Each message as JSON text, in chain order. New messages are stored as a JSON array of these. */
  readonly messages: MessageTexts;
  /** Position from 1 of the last user message; 0 without one. A new Turn begins when it is new. */
  readonly lastUserMessage: number;
  /** `digest` stores no content. */
  readonly keep: "full" | "digest";
  /** Salt of the commitment to the new content. */
  readonly contentSalt: Uint8Array;
  /**
   * The result of an earlier `sessions.find` for the Session that the Step continues or branches from; null for none. The
   * store refuses the Step if that is now another Session, or if the Session's data classes have changed since. Absent if
   * nobody looked it up.
   */
  readonly expectedSession?: SessionFacts | null;
}

/** What the Session rules of section 3 look at to say where a request belongs. */
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

/** The result of `openStep`: the Session and the Turn of the Step, or the reason why nothing was written. */
export type OpenStepResult =
  | {
      readonly opened: true;
      readonly sessionId: string;
      readonly turnId: string;
      /** The Session this Step branched from; null when it continued or created one. */
      readonly branchedFromSessionId: string | null;
      /**
       * The counters of its holds on paces once these were taken, in the order of the holds. Absent where it holds none, and
       * for a Step that was opened before.
       */
      readonly paces?: readonly number[];
    }
  | { readonly opened: false; readonly refusal: OpenStepRefusal };

/** Why a Step was not opened. The gateway answers it; the store only says which it was. */
export type OpenStepRefusal =
  /** The key was revoked or expired at `at`, or is gone. */
  | { readonly code: "invalid_api_key" }
  /** The key works, and was changed since it was read. */
  | { readonly code: "key_changed" }
  /** The Session that the Step continues or branches from is no longer `expectedSession`: find it again. */
  | { readonly code: "session_changed" }
  /** The named Session or Turn is not the owner's. */
  | { readonly code: "session_not_found" | "turn_not_found" }
  /** The first hold that does not fit. */
  | ({ readonly code: "budget_exceeded" } & RefusedHold)
  /** `budgetsVersion` is not the store's any more: compute the holds again. */
  | { readonly code: "budgets_changed" };

/** A hold that does not fit. */
export interface RefusedHold {
  readonly hold: Hold;
  /** What its counter had left at that moment: the hold's limit minus settled and held amounts, never below 0. */
  readonly left: number;
}

/** A further attempt of an open Step. */
export interface AttemptIntent {
  readonly organizationId: string;
  readonly stepId: string;
  readonly at: number;
  /** How the running attempt ended, and its charge. */
  readonly ended: AttemptSettlement;
  /** The decision on a fallback; null when the same model is tried again. */
  readonly decision: PolicyDecision | null;
  readonly attempt: AttemptStart;
  /** Null keeps the running holds for the next attempt; else they are settled and these are taken, all or none. */
  readonly holds: readonly Hold[] | null;
  readonly leaf: EvidenceLeaf;
}

/** The result of `openAttempt`: the next attempt runs, or nothing was written. */
export type OpenAttemptResult =
  | { readonly opened: true }
  /** The holds do not fit, nothing was written, and the running attempt's holds stay. */
  | ({ readonly opened: false } & RefusedHold)
  /** The Step is settled already, by recovery. */
  | { readonly opened: false; readonly hold: null };

/** How an attempt ended and the amounts its holds become. A request hold always becomes the amount that was held. */
export interface AttemptSettlement extends Omit<AttemptEnd, "error"> {
  readonly number: number;
  /** What the provider said, if it failed with an error of its own; null otherwise. */
  readonly error: CommittedContent | null;
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
  /** The reasoning that the client was shown, as UTF-8 text: part of no history; null for none. */
  readonly reasoning: CommittedContent | null;
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
export interface SettleStepResult {
  /** False when the Step had been settled before: nothing was written. */
  readonly settled: boolean;
  /** How the Step ended, by this settlement or the earlier one. */
  readonly outcome: StepOutcome;
}

/** A correction of the usage and cost of one attempt of a settled Step. */
export interface CorrectionIntent {
  readonly organizationId: string;
  readonly stepId: string;
  readonly correction: CorrectionDraft;
  readonly leaf: EvidenceLeaf;
}

/** A decision that let nothing happen: denied by the policy, or permitted and refused by what `decision.refusal` names. */
export interface Refusal {
  readonly owner: Owner;
  readonly decision: PolicyDecision;
  readonly leaf: EvidenceLeaf;
}

/**
 * Whose time leases are counted in. `gateway`: that of the calls, where a clock was given to the gateway, as tests do.
 * `store`: that of the database, where several machines share one, so that none of them takes its peers for dead
 * because its own clock is ahead. A store that one machine has to itself takes the time of the calls for both: its
 * processes read the clock that the database would.
 */
export type LeaseClock = "gateway" | "store";

/** A renewal of a process's lease, with the progress of its open Steps. */
export interface LeaseRenewal {
  readonly processId: string;
  /** Counts up from 1. */
  readonly renewal: number;
  readonly at: number;
  /** Counts as it is on the gateway's clock; on the store's, the lease holds for `until - at` from when it is written. */
  readonly until: number;
  readonly clock: LeaseClock;
  /** Every Step the process still means to settle, with the output tokens to charge if it is lost; null for all it held. */
  readonly steps: readonly {
    readonly organizationId: string;
    readonly stepId: string;
    readonly outputTokens: number | null;
  }[];
}

/** What settling a Step on behalf of a dead process needs. */
export interface LapsedStep {
  readonly step: Step;
  /** The organization's salt. */
  readonly salt: Uint8Array;
  /** Output tokens its process last recorded; null when it never did, or recorded null. */
  readonly outputTokens: number | null;
}
