import type {
  ApiKey,
  BudgetCounter,
  BudgetCounterKey,
  Correction,
  Owner,
} from "@tollgate/core/store";
import type { RowName } from "./change.ts";
import type { HoldRecord, ResponseRecord, SessionState, StepRecord } from "./records.ts";

/** What an assignment reads. An id is unique within its organization only. */
export interface SessionView {
  session(organizationId: string, id: string): SessionState | null;
  sessionOfTurn(organizationId: string, turnId: string): SessionState | null;
  /**
   * Of the key's and source's 100 most recently updated Sessions, those that a request's history begins with: whose head
   * is the chain's value at their length. In any order; a driver may leave out those that are in flight and as long.
   */
  recentMatches(owner: Owner, source: string, chain: Uint8Array): readonly SessionState[];
  /** The same of the Sessions that branched from one, directly or through others. */
  matchingBranches(session: SessionState, chain: Uint8Array): readonly SessionState[];
  /** The chain values that a Session itself has before a position, from its first on: without those of its origin. */
  chainBefore(session: SessionState, end: number): Uint8Array;
}

/**
 * What a decision reads: rows by their keys and a few short scans, as they are at that moment of the transaction that
 * will write its change. A driver that has not read a row yet may throw to fetch it and ask again, so a decision has no
 * effect but its result.
 */
export interface View extends SessionView, ResponseView, RetentionView {
  budgetsVersion(): number;
  key(
    organizationId: string,
    id: string,
  ): Pick<ApiKey, "userId" | "label" | "expiresAt" | "revokedAt" | "version"> | null;
  step(organizationId: string, id: string): StepRecord | null;
  /**
   * A Step that is to be opened now, if it was opened before. A driver may answer null without looking: then it looks and
   * asks again where the decision refuses the Step, or where inserting it meets a row.
   */
  openedBefore(organizationId: string, stepId: string): StepRecord | null;
  /** Every hold of a Step, those that are settled too. */
  holds(step: StepRecord): readonly HoldRecord[];
  /** Null for one that nothing was ever held on. */
  counter(key: BudgetCounterKey): BudgetCounter | null;
  /** The corrections of a Step's attempts, in the order they were made. */
  corrections(
    organizationId: string,
    stepId: string,
  ): readonly { readonly attempt: number; readonly correction: Correction }[];
  hasDecision(organizationId: string, id: string): boolean;
}

/** What removing stored responses reads, and storing one. */
export interface ResponseView {
  /** Null when there is none, or no more; one that has expired is there until it is removed. */
  response(
    organizationId: string,
    id: string,
  ): (Owner & Pick<ResponseRecord, "expiresAt" | "builtOn">) | null;
  messagesOf(organizationId: string, id: string): Pick<ResponseRecord, "inherited" | "messages">;
  /** The responses that are built on this one, by their ids. */
  continuations(organizationId: string, id: string): readonly string[];
  /** Those that have expired at a time, of all organizations, oldest expiry first. */
  expiredResponses(at: number, limit: number): readonly RowName[];
}

/** What retention reads. Every list has a bound, and is in the order of what goes first. */
export interface RetentionView extends Pick<SessionView, "session"> {
  /** Organizations with settled Steps that opened before a time, by their ids. */
  organizationsOfOldSteps(before: number, limit: number): readonly string[];
  /** Those Steps of one of them, the oldest first, by their ids. */
  oldSteps(organizationId: string, before: number, limit: number): readonly string[];
  /**
   * Organizations whose Session that was used the longest ago, of those behind the mark, was last updated before a time.
   * The mark is the place in the order of updates up to which all were looked at; -1 at first.
   */
  organizationsOfOldSessions(
    before: number,
    limit: number,
  ): readonly { readonly organizationId: string; readonly mark: number }[];
  /** Sessions behind the mark, in the order of their updates. */
  sessionsInOrder(organizationId: string, mark: number, limit: number): readonly SessionState[];
  /** Whether a Session that branched from this one, directly or through others, was updated at or after a time. */
  hasBranchSince(session: SessionState, time: number): boolean;
  /** Whether anything is kept of what was said in a Session since that was last erased. */
  holdsContent(session: SessionState): boolean;
}
