import type { Budget, BudgetCounter, BudgetRaise, Reconciliation } from "../domain/budget.ts";
import type { Owner } from "../domain/caller.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import type { SealedConnection } from "../domain/gateway-connection.ts";
import type { DecisionRefusal, PolicyDecision } from "../domain/policy-decision.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import type { Session, TranscriptPart } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import type { StoredResponse } from "../domain/stored-response.ts";
import type { StepSweep, SweepResult, TranscriptSweep } from "./retention.ts";
import type { StepQuery, Tenant } from "./step-query.ts";
import type { SessionLookup, SessionMatch } from "./step-verbs.ts";
import type { SummaryPage, SummaryQuery } from "./usage-summary.ts";

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

/** Customer-owned connections, one for each organization and gateway. The store never sees a credential that is open. */
export interface ConnectionRepository {
  /** Writes a connection in place of the one there is, and the leaf. The same sealed credential again changes nothing. */
  set(entry: { readonly connection: SealedConnection; readonly leaf: EvidenceLeaf }): Promise<void>;
  get(organizationId: string, gateway: string): Promise<SealedConnection | null>;
  /** By organization and gateway, in the order of their bytes. */
  list(query: ConnectionQuery, paging: StorePaging): Promise<StorePage<SealedConnection>>;
  /** Removes the connection with this id. False if there is none. */
  remove(removal: {
    readonly organizationId: string;
    readonly gateway: string;
    readonly id: string;
    readonly leaf: EvidenceLeaf;
  }): Promise<boolean>;
  /** Replaces the wrapped data key `from` with `to`. True if it already is `to`. False if it is another one, or gone. */
  rewrap(change: {
    readonly organizationId: string;
    readonly gateway: string;
    readonly from: Uint8Array;
    readonly to: Pick<SealedConnection, "keyId" | "wrappedKey">;
    readonly leaf: EvidenceLeaf;
  }): Promise<boolean>;
}

/** Which connections to list: all, or those that another key-encryption key than this wraps. */
export interface ConnectionQuery {
  readonly organizationId: Tenant;
  readonly notWrappedBy?: string;
}

/** Sessions and their transcripts, read by owner. Only `openStep` and `settleStep` write them, and `sweep` erases. */
export interface SessionRepository {
  get(organizationId: Tenant, id: string): Promise<Session | null>;
  /** Most recently updated first. */
  list(query: SessionQuery, paging: StorePaging): Promise<StorePage<Session>>;
  /**
   * The history in order, a branch's common part included; null when there is no such Session. `from` leaves out the
   * parts that end before this position; default 0, for the whole history.
   */
  transcript(
    organizationId: Tenant,
    id: string,
    from?: number,
  ): Promise<readonly TranscriptPart[] | null>;
  /**
   * The Session that `openStep` would continue, or branch from, by the same rules; null where it would create one, or
   * would refuse a named one. It takes no lock: pass the result to `openStep` as `expectedSession` to check that it still holds.
   */
  find(lookup: SessionLookup): Promise<SessionMatch | null>;
  /** Whether the Session is this organization's, user's and key's. */
  isOwned(owner: Owner, sessionId: string): Promise<boolean>;
  /** The Session of a Turn that is this organization's, user's and key's; null otherwise. */
  findByTurn(owner: Owner, turnId: string): Promise<string | null>;
  /**
   * Erases the content of Sessions last updated before `at - keep`, in up to `limit` of them: the content of their
   * requests, replies and instructions, and its salts. Chain values, commitments and the Sessions stay, so that they
   * can go on. A Session from which another branched waits until that one is as old.
   */
  sweep(sweep: TranscriptSweep): Promise<SweepResult>;
}

/** Which Sessions to list; every given field must match. */
export interface SessionQuery {
  readonly organizationId: Tenant;
  readonly userId?: string;
  readonly keyId?: string;
  readonly source?: string;
}

/** Steps, whatever their end, with every attempt. Only the verbs of the store write them, and `sweep` removes. */
export interface StepRepository {
  get(organizationId: Tenant, id: string): Promise<Step | null>;
  /** Newest first, by when they opened. */
  list(query: StepQuery, paging: StorePaging): Promise<StorePage<Step>>;
  /**
   * Sums over the next `limit` Steps of those that match, newest first, so that no call takes longer the more there is.
   * Members of the query that belong to an attempt select attempts here, not Steps. `createUsageFold` adds them up.
   */
  summarize(query: SummaryQuery, paging: StorePaging): Promise<SummaryPage>;
  /** What one Step recorded, whatever its end; each part null where there is none or only digests are kept. */
  contents(organizationId: Tenant, id: string): Promise<StepContents | null>;
  /**
   * Removes Steps that opened before `at - keep`, the oldest first. An open Step stays. So do Sessions, transcripts,
   * decisions, leaves, and the holds and counters of Budgets.
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
  /** The reasoning that the client was shown. */
  readonly reasoning: Uint8Array | null;
  /** The parts of which only the commitment is kept. */
  readonly withheld: readonly StepPart[];
}

/** A part of a Step's content. */
export type StepPart = "instructions" | "request" | "reply" | "reasoning";

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
  /** Whether something refused what the policy had permitted. */
  readonly refused?: boolean;
  /** Only decisions that one of these refused. */
  readonly refusedBy?: readonly DecisionRefusal["by"][];
  readonly from?: number;
  readonly to?: number;
}

/** Budgets created at run time, and the counters of all budgets, declared ones too. */
export interface BudgetRepository {
  /** Counts every change of the budgets below and of their raises; `openStep` compares it. */
  version(): Promise<number>;
  /** Budgets created at run time. */
  list(): Promise<readonly Budget[]>;
  /** Writes a budget, which begins without raises. False when the id is taken. */
  insert(budget: Budget, leaf: EvidenceLeaf): Promise<boolean>;
  /** Replaces a budget's scope, limit, mode and warnings; its counters stay. False when there is none. */
  update(budget: Budget, leaf: EvidenceLeaf): Promise<boolean>;
  /** Removes the budget and its raises; its counters stay as history. False when there is none. */
  remove(id: string, leaf: EvidenceLeaf): Promise<boolean>;
  /** Raises of all budgets, declared ones too, in the order they were made; of those that are over, any may be gone. */
  raises(): Promise<readonly BudgetRaise[]>;
  /**
   * Adds a raise and forgets those of its budget that are over at its time. False when the id is taken, or when `most`
   * of its budget are not over, however many come at once.
   */
  insertRaise(raise: BudgetRaise, leaf: EvidenceLeaf, max: number): Promise<boolean>;
  /** Ends a raise early. False if its budget has no such raise. */
  removeRaise(
    reference: { readonly budgetId: string; readonly id: string },
    leaf: EvidenceLeaf,
  ): Promise<boolean>;
  /** The counters of a budget, newest period first. */
  counters(
    query: { readonly budgetId: string; readonly subject?: string; readonly periodStart?: number },
    paging: StorePaging,
  ): Promise<StorePage<BudgetCounter>>;
  /** Recomputes every counter from its ledger, as of one moment, and returns up to `limit` that differ. */
  reconcile(query: { readonly limit: number }): Promise<Reconciliation>;
}

/** Rate limits created at run time. `budgets.version()` counts their changes too: a Step's holds depend on both. */
export interface RateLimitRepository {
  list(): Promise<readonly RateLimit[]>;
  /** False when a rate limit or a budget has the id. */
  insert(rateLimit: RateLimit, leaf: EvidenceLeaf): Promise<boolean>;
  /** Replaces everything except the id, and keeps the used amount. Returns false if it does not exist. */
  update(rateLimit: RateLimit, leaf: EvidenceLeaf): Promise<boolean>;
  /** False when there is none. */
  remove(id: string, leaf: EvidenceLeaf): Promise<boolean>;
}

/** The evidence leaves: one for each thing attested, written in the transaction that did it. */
export interface EvidenceRepository {
  /** An organization's leaves in the order they were written. */
  list(
    query: { readonly organizationId: string },
    paging: StorePaging,
  ): Promise<StorePage<EvidenceLeaf>>;
  /** The leaves of administrative changes (`isChangeKind`), newest first. */
  changes(query: ChangeQuery, paging: StorePaging): Promise<StorePage<EvidenceLeaf>>;
  /**
   * Notes which version of the policy decides from now on, and writes the leaf, made with the version noted before; null
   * for none. Writes nothing where it is the version noted already.
   */
  notePolicy(note: {
    readonly version: string;
    readonly leaf: (before: string | null) => EvidenceLeaf;
  }): Promise<void>;
}

/** Which changes to list: at or after `from`, before `to`. Those of no organization are in the log of `""`. */
export interface ChangeQuery {
  readonly organizationId: Tenant;
  readonly kind?: readonly string[];
  readonly from?: number;
  readonly to?: number;
}

/**
 * Stored responses. Every read takes the owner: organization, user and key that created them. A response that is
 * another owner's, deleted, expired at `at` or unknown is null in every case.
 */
export interface ResponseRepository {
  get(owner: Owner, id: string, at: number): Promise<StoredResponse | null>;
  /**
   * The messages of a response's whole conversation, oldest first: JSON arrays in UTF-8, one after the other, ending
   * with its own. Responses it continues count even when they have expired or were deleted since.
   */
  history(owner: Owner, id: string, at: number): Promise<ResponseHistory | null>;
  /**
   * Deletes a response and writes the leaf. Moves its history into the responses that continue it, which keep it as long as
   * they exist. False if there is no such response.
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
