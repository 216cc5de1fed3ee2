import type { AdminToken } from "../domain/admin-token.ts";
import type { Budget, BudgetCounter, BudgetRaise, Reconciliation } from "../domain/budget.ts";
import type { Owner } from "../domain/caller.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import type { SealedConnection } from "../domain/gateway-connection.ts";
import type { DecisionRefusal, PolicyDecision } from "../domain/policy-decision.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import type { Session, TranscriptPart } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import type { StoredResponse } from "../domain/stored-response.ts";
import type { UnfoldedStep } from "../domain/usage-fold.ts";
import type { HourDetail, UsageHour } from "../domain/usage-hours.ts";
import type { StepSweep, SweepResult, TranscriptSweep } from "./retention.ts";
import type { StepQuery, Tenant } from "./step-query.ts";
import type { SessionLookup, SessionMatch } from "./step-verbs.ts";
import type { SummaryPage, SummaryQuery } from "./usage-summary.ts";

/**
 * A page of records, and the cursor of the next one, or null at the end. A page with a cursor may have fewer records than its
 * limit, or none.
 */
export interface StorePage<Row> {
  readonly data: readonly Row[];
  readonly nextCursor: string | null;
}

/** Which page to return. `cursor` comes from the previous page. */
export interface StorePaging {
  readonly cursor: string | null;
  readonly limit: number;
  /**
   * How many rows a page of a filtered list may scan if no index finds those that match. Then it ends, and its cursor
   * continues there. Default: `defaultMaxScanned`.
   */
  readonly maxScanned?: number;
}

/** Called with a record before a change of it, in the same transaction. If it throws, nothing is written. */
export type CheckBefore<Row> = (before: Row) => void;

/** Customer-owned connections, one for each organization and gateway. The store sees credentials only encrypted. */
export interface ConnectionRepository {
  /**
   * Creates or replaces a connection, and writes the leaf. `check` gets the one before, or null. Repeating it with the same
   * sealed credential changes nothing, and checks nothing.
   */
  set(entry: {
    readonly connection: SealedConnection;
    readonly leaf: EvidenceLeaf;
    readonly check?: CheckBefore<SealedConnection | null>;
  }): Promise<void>;
  get(organizationId: string, gateway: string): Promise<SealedConnection | null>;
  /** Sorted by the bytes of organization and gateway. */
  list(query: ConnectionQuery, paging: StorePaging): Promise<StorePage<SealedConnection>>;
  /** Removes the connection with this id. False if it doesn't exist. */
  remove(removal: {
    readonly organizationId: string;
    readonly gateway: string;
    readonly id: string;
    readonly leaf: EvidenceLeaf;
    readonly check?: CheckBefore<SealedConnection>;
  }): Promise<boolean>;
  /** Replaces the wrapped data key `from` with `to`. True if it already is `to`. False if it is neither, or is gone. */
  rewrap(change: {
    readonly organizationId: string;
    readonly gateway: string;
    readonly from: Uint8Array;
    readonly to: Pick<SealedConnection, "keyId" | "wrappedKey">;
    readonly leaf: EvidenceLeaf;
  }): Promise<boolean>;
}

/** Which connections to list: all, or those not wrapped by this key-encryption key. */
export interface ConnectionQuery {
  readonly organizationId: Tenant;
  readonly notWrappedBy?: string;
}

/** Sessions and their transcripts, by owner. Only `openStep` and `settleStep` write them, and only `sweep` erases them. */
export interface SessionRepository {
  get(organizationId: Tenant, id: string): Promise<Session | null>;
  /** Most recently updated first. */
  list(query: SessionQuery, paging: StorePaging): Promise<StorePage<Session>>;
  /**
   * The history in order, including the part that a branch shares with its origin. Null if the Session doesn't exist.
   * `from` leaves out the parts that end before this position, and `to` those that begin at it or later. Default: the whole
   * history.
   */
  transcript(
    organizationId: Tenant,
    id: string,
    from?: number,
    to?: number,
  ): Promise<readonly TranscriptPart[] | null>;
  /**
   * The Session that `openStep` would continue or branch from. Null if it would create one, or refuse a named one. Takes no
   * lock: pass the result to `openStep` as `expectedSession`, which checks that it is still true.
   */
  find(lookup: SessionLookup): Promise<SessionMatch | null>;
  /** Whether the Session belongs to this organization, user and key. */
  isOwned(owner: Owner, sessionId: string): Promise<boolean>;
  /** The Session of a Turn if it belongs to this organization, user and key; null otherwise. */
  findByTurn(owner: Owner, turnId: string): Promise<string | null>;
  /**
   * Erases the content of up to `limit` Sessions last updated before `at - keep`: their requests, replies and instructions,
   * and the salts of these. The Sessions, chain values and commitments stay, so a Session can still be continued. A Session
   * that another one branched from waits until that one is as old. One call erases at most 500 contents and 4 MiB, or one
   * larger content: a long Session takes several calls, each leaf names it, and the last call counts it.
   */
  sweep(sweep: TranscriptSweep): Promise<SweepResult>;
}

/** Which Sessions to list. All given fields must match. */
export interface SessionQuery {
  readonly organizationId: Tenant;
  readonly userId?: string;
  readonly keyId?: string;
  readonly source?: string;
}

/** All Steps with all their attempts, however they ended. Only the store's verbs write them, and `sweep` removes them. */
export interface StepRepository {
  get(organizationId: Tenant, id: string): Promise<Step | null>;
  /** Most recently opened first. */
  list(query: StepQuery, paging: StorePaging): Promise<StorePage<Step>>;
  /**
   * Sums up the next `limit` matching Steps, newest first. The limit keeps each call short, however many Steps there are.
   * Query members that belong to an attempt select attempts here, not Steps. `createUsageFold` adds them up.
   */
  summarize(query: SummaryQuery, paging: StorePaging): Promise<SummaryPage>;
  /** The recorded content of a Step, however it ended. A part is null if it doesn't exist or only its digest is kept. */
  contents(organizationId: Tenant, id: string): Promise<StepContents | null>;
  /**
   * Removes Steps that opened before `at - keep`, oldest first. Open Steps stay, and so do Sessions, transcripts, decisions,
   * leaves, and the holds and counters of Budgets.
   */
  sweep(sweep: StepSweep): Promise<SweepResult>;
}

/** The content of one Step as UTF-8 bytes: instructions and reasoning as text, the others as JSON arrays of messages. */
export interface StepContents {
  readonly instructions: Uint8Array | null;
  /** The messages of the request that were new to its Session. */
  readonly request: Uint8Array | null;
  /** The reply, or the partial text of a Step that did not complete. */
  readonly reply: Uint8Array | null;
  /** The reasoning that was shown to the client. */
  readonly reasoning: Uint8Array | null;
  /** The parts that are kept only as a commitment. */
  readonly withheld: readonly StepPart[];
}

/** A part of a Step's content. */
export type StepPart = "instructions" | "request" | "reply" | "reasoning";

/** Policy decisions, both permits and denials. Only the store's verbs write them. */
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
  /** Whether the request was refused although the policy permitted it. */
  readonly refused?: boolean;
  /** Only decisions on requests that one of these refused. */
  readonly refusedBy?: readonly DecisionRefusal["by"][];
  readonly from?: number;
  readonly to?: number;
}

/** Budgets created at run time, and the counters of all budgets, including declared ones. */
export interface BudgetRepository {
  /** Counts every change of budgets, raises and rate limits. `openStep` compares it. */
  version(): Promise<number>;
  /** Budgets created at run time. */
  list(): Promise<readonly Budget[]>;
  /** Writes a budget, which has no raises at first. False if the id is taken. */
  insert(budget: Budget, leaf: EvidenceLeaf): Promise<boolean>;
  /** Replaces a budget's scope, limit, mode and warnings. Its counters stay. False if it doesn't exist. */
  update(budget: Budget, leaf: EvidenceLeaf, check?: CheckBefore<Budget>): Promise<boolean>;
  /** Removes the budget and its raises. Its counters stay as history. False if it doesn't exist. */
  remove(id: string, leaf: EvidenceLeaf, check?: CheckBefore<Budget>): Promise<boolean>;
  /** The raises of all budgets, including declared ones, in the order they were made. Those that ended may be missing. */
  raises(): Promise<readonly BudgetRaise[]>;
  /**
   * Adds a raise, and forgets raises of its budget that have ended by then. False if the id is taken, or if the budget
   * already has `max` raises that have not ended, even if several are added at once. `check` gets the budget if it was created
   * at run time.
   */
  insertRaise(
    raise: BudgetRaise,
    leaf: EvidenceLeaf,
    max: number,
    check?: CheckBefore<Budget>,
  ): Promise<boolean>;
  /** Ends a raise early. False if its budget has no such raise. `check` gets the budget if it was created at run time. */
  removeRaise(
    reference: { readonly budgetId: string; readonly id: string },
    leaf: EvidenceLeaf,
    check?: CheckBefore<Budget>,
  ): Promise<boolean>;
  /** The counters of a budget, newest period first. */
  counters(
    query: { readonly budgetId: string; readonly subject?: string; readonly periodStart?: number },
    paging: StorePaging,
  ): Promise<StorePage<BudgetCounter>>;
  /**
   * Recomputes every counter from its ledger, and returns up to `limit` counters that differ. A counter and its ledger are
   * compared as of one moment, so Steps that open, settle or are corrected meanwhile cause no difference. Two counters may
   * be compared as of different moments. Doesn't block the process: other calls run in between.
   */
  reconcile(query: { readonly limit: number }): Promise<Reconciliation>;
}

/** Rate limits created at run time. `budgets.version()` counts their changes too, because a Step's holds depend on both. */
export interface RateLimitRepository {
  list(): Promise<readonly RateLimit[]>;
  /** False if a rate limit or a budget has the id. */
  insert(rateLimit: RateLimit, leaf: EvidenceLeaf): Promise<boolean>;
  /** Replaces everything except the id, and keeps the used amount. False if it doesn't exist. */
  update(
    rateLimit: RateLimit,
    leaf: EvidenceLeaf,
    check?: CheckBefore<RateLimit>,
  ): Promise<boolean>;
  /** False if it doesn't exist. */
  remove(id: string, leaf: EvidenceLeaf, check?: CheckBefore<RateLimit>): Promise<boolean>;
}

/** Tokens for the admin API. The store never sees a secret, only its SHA-256 digest of 32 bytes. */
export interface AdminTokenRepository {
  /** Writes a token, the digest of its secret and its leaf. Writes nothing if a token has this id or this digest. */
  insert(entry: {
    readonly token: AdminToken;
    readonly digest: Uint8Array;
    readonly leaf: EvidenceLeaf;
  }): Promise<void>;
  /** The token with this digest, even if revoked or expired. */
  findByDigest(digest: Uint8Array): Promise<AdminToken | null>;
  get(id: string): Promise<AdminToken | null>;
  /** Newest first. */
  list(paging: StorePaging): Promise<StorePage<AdminToken>>;
  /** Ends a token, and writes the leaf. Writes nothing if it is unknown or already revoked. Returns whether it wrote. */
  revoke(revocation: {
    readonly id: string;
    readonly at: number;
    readonly leaf: EvidenceLeaf;
  }): Promise<boolean>;
  /** Records when a token was last used. Never moves a time back. */
  touch(use: { readonly id: string; readonly at: number }): Promise<void>;
}

/** The evidence leaves. Each is written in the same transaction as the change it attests. */
export interface EvidenceRepository {
  /** An organization's leaves in the order they were written. */
  list(
    query: { readonly organizationId: string },
    paging: StorePaging,
  ): Promise<StorePage<EvidenceLeaf>>;
  /** The leaves of administrative changes (`isChangeKind`), newest first. */
  changes(query: ChangeQuery, paging: StorePaging): Promise<StorePage<EvidenceLeaf>>;
  /** Writes a leaf that attests nothing else in the store. Writes nothing if it already has the leaf. */
  record(leaf: EvidenceLeaf): Promise<void>;
  /**
   * Records the policy version that decides from now on, and writes the leaf. The leaf is made from the version recorded
   * before, or null for none. Writes nothing if this version is already recorded.
   */
  notePolicy(note: {
    readonly version: string;
    readonly leaf: (before: string | null) => EvidenceLeaf;
  }): Promise<void>;
}

/** Which changes to list: at or after `from`, before `to`. Changes that belong to no organization are in the log of `""`. */
export interface ChangeQuery {
  readonly organizationId: Tenant;
  readonly kind?: readonly string[];
  readonly from?: number;
  readonly to?: number;
}

/**
 * Stored responses. Every read takes the owner: the organization, user and key that created them. It returns null alike for
 * a response that belongs to another owner, was deleted, has expired at `at`, or never existed.
 */
export interface ResponseRepository {
  get(owner: Owner, id: string, at: number): Promise<StoredResponse | null>;
  /**
   * The messages of a response's whole conversation, oldest first: a sequence of JSON arrays in UTF-8, its own last.
   * Includes the responses it continues, even if they have expired or were deleted.
   */
  history(owner: Owner, id: string, at: number): Promise<ResponseHistory | null>;
  /**
   * Deletes a response and writes the leaf. Responses that continue it take over its history and keep it as long as they
   * exist. The claim on its idempotency key no longer keeps the answer. False if the response doesn't exist.
   */
  delete(deletion: {
    readonly owner: Owner;
    readonly id: string;
    readonly at: number;
    readonly leaf: EvidenceLeaf;
  }): Promise<boolean>;
  /**
   * Removes up to `limit` responses and claims on idempotency keys that have expired at `at`, responses first, then by their
   * expiry. Like `delete`, but without a leaf. Returns how many it removed.
   */
  sweep(query: { readonly at: number; readonly limit: number }): Promise<number>;
}

/** Where a stored response belongs, and its conversation up to and including it. */
export interface ResponseHistory extends Pick<StoredResponse, "sessionId" | "dataClass"> {
  readonly messages: readonly Uint8Array[];
}

/**
 * Sums over settled Steps by hour, so that a month of Steps is read in milliseconds. A gateway folds Steps in the order of
 * their list, the oldest first. The mark is the cursor of the last folded Step. The sums of the hours, plus the Steps
 * after the mark as they were first recorded, plus the rows of their corrections, are the sums over all Steps.
 */
export interface UsageRepository {
  /**
   * Looks at the next `limit` organizations, in the order of the UTF-8 bytes of their ids, and returns those that may have
   * Steps after their mark that opened before `until`.
   */
  unfolded(query: {
    readonly after: string;
    readonly until: number;
    readonly limit: number;
  }): Promise<UnfoldedOrganizations>;
  /** The organization's mark; null if nothing was folded yet. */
  mark(organizationId: string): Promise<string | null>;
  /** The Steps after a cursor, oldest first. Without corrections. */
  steps(
    query: { readonly organizationId: string; readonly to?: number },
    paging: StorePaging,
  ): Promise<UnfoldedSteps>;
  /**
   * Adds hours and moves the mark, in one transaction. Writes nothing and returns false if the mark is no longer `after`,
   * because another process folded the same Steps.
   */
  add(folded: {
    readonly organizationId: string;
    readonly after: string | null;
    readonly mark: string;
    readonly hours: readonly UsageHour[];
  }): Promise<boolean>;
  /** The hours of a detail, at or after `from` and before `to`, oldest first. `correct` of the store adds hours, too. */
  hours(
    query: {
      readonly organizationId: string;
      readonly detail: HourDetail;
      readonly from?: number;
      readonly to?: number;
    },
    paging: StorePaging,
  ): Promise<StorePage<UsageHour>>;
}

/** A page of the organizations that may have Steps to fold. */
export interface UnfoldedOrganizations {
  readonly organizations: readonly string[];
  /** `after` of the next page; null if this is the last one. */
  readonly next: string | null;
}

/** Steps in the order of folding. */
export interface UnfoldedSteps {
  readonly steps: readonly UnfoldedStep[];
  /** The cursor after the Step with this index. Computed on demand: a fold needs that of its last Step only. */
  cursorOf(index: number): string;
}
