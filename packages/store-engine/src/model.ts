import {
  type ApiKey,
  type AppliedCorrection,
  type BudgetCounter,
  type BudgetCounterKey,
  type ClaimEnding,
  type ClaimIntent,
  type CommittedContent,
  type EarlierClaim,
  type EndpointName,
  type EvidenceLeaf,
  GatewayError,
  type HoldUnit,
  type Owner,
  type PolicyDecision,
  type Session,
  type Step,
  type StoredResponse,
  type UsageHour,
} from "@tollgate/core/store";
import type { AttemptCorrection } from "./whole-step.ts";

/** The decision of a rule: its result, and the rows to write for it. An empty change writes nothing. */
export interface Decision<Result> {
  readonly result: Result;
  readonly change: Change;
  /**
   * The result if a counter no longer has room when the change is written. Nothing is written then, and `left` is the
   * amount that was left. A driver that decides inside its writing transaction never calls it.
   */
  readonly resultIfOverLimit?: (counter: BudgetCounterKey, left: number) => Result;
  /** The result with the paces after the change, for a driver that learns the counters only when it writes. */
  readonly resultWithPaces?: (paces: readonly number[]) => Result;
}

/** Rows to write, all or none, in this order. A driver gives each change one number of the store's sequence. */
export type Change = readonly Operation[];

/** One row to write. A driver knows where the row goes, but applies no rule. */
export type Operation =
  /** Also adds it to the open Steps, as of this renewal of its process's lease. Always first in its change. */
  | { readonly write: "insert step"; readonly row: StepRecord; readonly renewal: number }
  /** The Step continues with another attempt. */
  | { readonly write: "update step"; readonly row: StepRecord }
  /** The Step ended and is no longer open. */
  | { readonly write: "settle step"; readonly row: StepRecord }
  | { readonly write: "insert session"; readonly row: SessionState }
  | { readonly write: "update session"; readonly row: SessionState }
  /** It has the id of the Step that began it, which is the first of the change. */
  | { readonly write: "insert turn"; readonly row: TurnRecord }
  | { readonly write: "insert part"; readonly row: PartRecord }
  | { readonly write: "insert error"; readonly row: ErrorRecord }
  /** Does nothing if the organization already has the id. */
  | { readonly write: "insert decision"; readonly row: DecisionRecord }
  /** The rule did not find this decision. If it exists by now, the driver runs the rule again. */
  | { readonly write: "claim decision"; readonly row: DecisionRecord }
  | { readonly write: "insert hold"; readonly row: HoldRecord }
  | { readonly write: "settle hold"; readonly row: HoldRecord }
  /** A missing counter starts at 0. */
  | { readonly write: "move counter"; readonly row: CounterMove }
  | { readonly write: "insert correction"; readonly row: CorrectionRecord }
  /** A correction's difference. Does nothing if the hour has a row with the id. */
  | { readonly write: "insert usage"; readonly row: UsageHour }
  | { readonly write: "insert response"; readonly row: ResponseRecord }
  | { readonly write: "remove response"; readonly row: RowName }
  /** Keeps it for the histories built on it, without its body and input, and with an expiry at which nobody finds it. */
  | {
      readonly write: "hide response";
      readonly row: RowName & { readonly expiresAt: typeof keptExpiry | typeof dueExpiry };
    }
  /** The rule found no such claim. If it exists by now, the driver runs the rule again. */
  | { readonly write: "insert claim"; readonly row: ClaimRecord }
  /** Changes nothing if another Step has the claim by now. The same applies to the next two. */
  | { readonly write: "settle claim"; readonly row: ClaimName & { readonly ending: SettledClaim } }
  /** Drops the answer. Until the claim expires, a repeat learns that it isn't kept. */
  | { readonly write: "forget claim"; readonly row: ClaimName }
  | { readonly write: "remove claim"; readonly row: ClaimName }
  /** Keeps its Session, its transcript and its holds. */
  | { readonly write: "remove step"; readonly row: RowName }
  /** Removes the content and salts of some of its parts and errors. Keeps chain values and commitments. */
  | {
      readonly write: "erase session";
      readonly row: RowName & { readonly contents: readonly ContentName[] };
    }
  /** Records up to which update an organization's Sessions were checked for erasure. */
  | {
      readonly write: "mark erased";
      readonly row: { readonly organizationId: string; readonly updated: number };
    }
  | { readonly write: "insert leaf"; readonly row: EvidenceLeaf };

/** Identifies a row by its organization and id. */
export interface RowName {
  readonly organizationId: string;
  readonly id: string;
}

/** A decision that changes nothing. */
export function unchanged<Result>(result: Result): Decision<Result> {
  return { result, change: [] };
}

/** The error a driver throws instead of writing a Session or response whose id its organization already has. */
export function idTakenError(noun: "new Session" | "stored response"): GatewayError {
  return new GatewayError("invalid_argument", `The id for a ${noun} is taken.`);
}

/**
 * The reads of a rule: rows by their keys and a few short scans, all as of the transaction that will write the change. A
 * driver may throw to fetch a row it doesn't have yet and then run the rule again, so a rule must have no side effects.
 */
export interface View extends SessionView, ResponseView, RetentionView {
  budgetsVersion(): number;
  key(
    organizationId: string,
    id: string,
  ): Pick<ApiKey, "userId" | "label" | "expiresAt" | "revokedAt" | "version"> | null;
  step(organizationId: string, id: string): StepRecord | null;
  /**
   * The Step to open, if it is already open. A driver may return null without looking. It then looks and runs the rule
   * again if the rule refuses the Step or if inserting it finds an existing row.
   */
  openedBefore(organizationId: string, stepId: string): StepRecord | null;
  /** Every hold of a Step, including settled ones. */
  holds(step: StepRecord): readonly HoldRecord[];
  /** The claim on an idempotency key, expired or not. Null if there is none. */
  claim(key: ClaimKey): ClaimRecord | null;
  /** Null if nothing was ever held on it. */
  counter(key: BudgetCounterKey): BudgetCounter | null;
  /** The corrections of a Step's attempts, oldest first. */
  corrections(organizationId: string, stepId: string): readonly AttemptCorrection[];
  hasDecision(organizationId: string, id: string): boolean;
}

/** The reads for assigning a request to a Session. An id is unique only within its organization. */
export interface SessionView {
  session(organizationId: string, id: string): SessionState | null;
  sessionOfTurn(organizationId: string, turnId: string): SessionState | null;
  /**
   * Of the key's and source's 100 most recently updated Sessions, those whose history is a prefix of the request: their
   * head is the chain's value at their length. In any order. A driver may omit Sessions in flight of the same length.
   */
  recentMatches(owner: Owner, source: string, chain: Uint8Array): readonly SessionState[];
  /** The same among all branches of the tree that this Session belongs to. At least the 100 longest of them. */
  matchingBranches(session: SessionState, chain: Uint8Array): readonly SessionState[];
  /** A Session's own chain values before a position, without those of the Session it branched from. */
  chainBefore(session: SessionState, end: number): Uint8Array;
}

/** The reads for storing and removing responses. */
export interface ResponseView {
  /** Null if it doesn't exist. An expired response exists until it is removed. */
  response(organizationId: string, id: string): ViewedResponse | null;
  /** The ids of responses built directly on this one. */
  continuations(organizationId: string, id: string, limit: number): readonly string[];
  /** The responses of all organizations that have expired, oldest expiry first, without those kept for others. */
  expiredResponses(at: number, limit: number): readonly LinkedResponse[];
  /** The claims of all organizations that have expired, oldest expiry first. */
  expiredClaims(at: number, limit: number): readonly ClaimName[];
}

/** The name of a response, and the id of the one that it is built on. */
export type LinkedResponse = RowName & Pick<ResponseRecord, "builtOn">;

/** A response without its content. */
export type ViewedResponse = Owner &
  Pick<ResponseRecord, "stepId" | "expiresAt" | "builtOn" | "idempotencyKeySha256"> & {
    /** The bytes of the messages that it keeps for histories. */
    readonly keptBytes: number;
  };

/** A page of up to `limit` organizations, beginning with `from`, in the order of the UTF-8 bytes of their ids. */
export interface OrganizationPaging {
  readonly from: string;
  readonly limit: number;
}

/** The organizations of a page that are due. */
export interface DueOrganizations<Due> {
  readonly due: readonly Due[];
  /** The organization that the next page begins with, which may be the last one of this page; null if this is the last page. */
  readonly next: string | null;
}

/** The reads for retention. Every list is bounded, and starts with the rows to remove first. */
export interface RetentionView extends Pick<SessionView, "session"> {
  /** Organizations with settled Steps opened before a time. */
  organizationsOfOldSteps(before: number, page: OrganizationPaging): DueOrganizations<string>;
  /** The ids of those Steps of one organization, oldest first. */
  oldSteps(organizationId: string, before: number, limit: number): readonly string[];
  /**
   * Organizations whose least recently updated Session after the mark was last updated before a time. The mark is the
   * update up to which all Sessions were checked, -1 at first.
   */
  organizationsOfOldSessions(
    before: number,
    page: OrganizationPaging,
  ): DueOrganizations<{ readonly organizationId: string; readonly mark: number }>;
  /** The Sessions after the mark, in the order of their updates. */
  sessionsInOrder(organizationId: string, mark: number, limit: number): readonly SessionState[];
  /** Whether a Session whose history begins with messages that this one stores was updated at or after a time. */
  isNeededSince(session: SessionState, time: number): boolean;
  /** The contents of a Session that aren't erased: its parts, then its errors, up to a number of them. */
  contents(session: SessionState, limit: number): readonly HeldContent[];
}

/** Identifies a content within its Session. `place` is the driver's: a position, or the number of an attempt. */
export interface ContentName {
  readonly of: "part" | "error";
  readonly stepId: string;
  readonly place: number;
}

/** A content that isn't erased, and its size. */
export interface HeldContent extends ContentName {
  /** 0 if only its commitment is kept. */
  readonly bytes: number;
}

/** Whether a record belongs to this organization, user and key. */
export function isOwnedBy(owner: Owner, record: Owner): boolean {
  return (
    record.organizationId === owner.organizationId &&
    record.userId === owner.userId &&
    record.keyId === owner.keyId
  );
}

/** An amount spent, in nanodollars and tokens. */
export interface Charge {
  readonly usd: number;
  readonly tokens: number;
}

/** A Session, and what only the rules need to know about it. */
export interface SessionState extends Session {
  /** Its place in the order of all updates. Unique, so "most recently" has no ties. A driver sets it when it writes. */
  readonly updated: number;
  /**
   * Whether the Step that created it is in flight and nothing was added since. An identical request does not continue
   * such a Session.
   */
  readonly inFlight: boolean;
  /** The latest Turn. */
  readonly turnId: string;
  /** The first Session of its tree of branches. Null if that is this one. */
  readonly rootSessionId: string | null;
  /**
   * The nearest of the Sessions it branched from that stores messages of its history. Null if it stores them all. So a
   * history is read from the Sessions that store it, however many branches lie between them.
   */
  readonly historyFromSessionId: string | null;
}

/** A Turn of a Session. */
export interface TurnRecord extends Owner {
  readonly id: string;
  readonly sessionId: string;
}

/** Content that one Step adds to its Session: messages of the transcript, or content recorded only with the Step. */
export interface PartRecord extends CommittedContent {
  readonly organizationId: string;
  readonly sessionId: string;
  readonly stepId: string;
  readonly kind: "request" | "reply" | "instructions" | "reasoning";
  /** The position of its first message in the transcript, from 0. Null if it isn't part of the transcript. */
  readonly position: number | null;
  /** The number of messages. */
  readonly count: number;
  /** The chain value after each message, 32 bytes each. */
  readonly chain: Uint8Array;
}

/** A Step, and what only the rules need to know about it. */
export interface StepRecord {
  /** Without corrections and provider errors, which have their own records. */
  readonly step: Step;
  /** The process that will settle it. */
  readonly processId: string;
  /** The number of messages in the history it was sent with. */
  readonly length: number;
  readonly openedSession: boolean;
  readonly branchedFromSessionId: string | null;
  /** The number of holds that settle with its running attempt. */
  readonly holds: number;
  /** The charges of ended attempts whose holds the next attempt kept. */
  readonly carried: Charge;
}

/** An amount held for an attempt. `settled` is null while it is held, then the amount charged. */
export interface HoldRecord extends BudgetCounterKey {
  readonly organizationId: string;
  readonly stepId: string;
  readonly attempt: number;
  readonly unit: HoldUnit;
  readonly amount: number;
  readonly settled: number | null;
}

/**
 * The amounts to add to a counter. Many Steps move the same counter at once, so a rule states the difference, not the
 * total it saw. The settled total stays between 0 and the largest safe integer.
 */
export interface CounterMove extends BudgetCounterKey {
  readonly unit: HoldUnit;
  readonly settled: number;
  readonly held: number;
  /** The least settled amount to move from: a lower one counts as this. */
  readonly floor: number;
  /** The part of `held` that is newly held and has to fit. */
  readonly taken: number;
  /** The most that settled and held may add up to after the move. Null if there is no limit. */
  readonly limit: number | null;
}

/** A provider's error text for a failed attempt. */
export interface ErrorRecord extends CommittedContent {
  readonly organizationId: string;
  readonly sessionId: string;
  readonly stepId: string;
  readonly attempt: number;
}

/** A correction of one attempt, and how far it moved the counters that the attempt was charged to. */
export interface CorrectionRecord extends Pick<AppliedCorrection, "correction" | "delta"> {
  readonly organizationId: string;
  readonly stepId: string;
  readonly attempt: number;
  /** The attempt that took the holds it was charged to. Null if there were no holds. */
  readonly heldBy: number | null;
}

/** The expiry of a removed response that is kept for the histories built on it. */
export const keptExpiry = -1;
/** The expiry of one that nothing builds on any longer. The next sweep removes it. */
export const dueExpiry = 0;

/** A stored response: linked to the one it continues, or with the messages before it if that one is gone. */
export interface ResponseRecord extends StoredResponse {
  readonly messages: Uint8Array;
  readonly builtOn: string | null;
  /** The messages before it, if it isn't linked: a JSON array in UTF-8. */
  readonly inherited: Uint8Array;
  /** Of its Step; null without one. */
  readonly idempotencyKeySha256: string | null;
}

/** Finds a claim. Another API key's claim on an equal idempotency key is unrelated. */
export interface ClaimKey {
  readonly organizationId: string;
  readonly keyId: string;
  readonly endpoint: EndpointName;
  readonly keySha256: ClaimIntent["keySha256"];
}

/** The claim of one Step. */
export interface ClaimName extends ClaimKey {
  readonly stepId: string;
}

/** A claim on an idempotency key: one Step answers for it. */
export interface ClaimRecord
  extends ClaimName,
    Pick<ClaimIntent, "requestSha256">,
    Pick<EarlierClaim, "decisionId" | "dataClass" | "openedAt" | "answer"> {
  readonly state: "in_progress" | SettledClaim["state"];
  /** Null while its Step is open. */
  readonly expiresAt: number | null;
}

/** How a claim ends that isn't freed. */
export type SettledClaim = Exclude<ClaimEnding, { readonly state: "freed" }>;

/** A policy decision, and the owner of the request it was made for. */
export interface DecisionRecord {
  readonly owner: Owner;
  readonly decision: PolicyDecision;
}
