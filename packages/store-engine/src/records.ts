import type {
  AppliedCorrection,
  BudgetCounterKey,
  CommittedContent,
  HoldUnit,
  Owner,
  PolicyDecision,
  Session,
  Step,
  StoredResponse,
} from "@tollgate/core/store";

/** What was spent: nanodollars and tokens. */
export interface Charge {
  readonly usd: number;
  readonly tokens: number;
}

/** A Session with what only the rules look at. */
export interface SessionState extends Session {
  /** Its place in the order of all updates: unique, so that "most recently" has no ties. A driver sets it as it writes. */
  readonly updated: number;
  /** Whether the Step that made it is in flight and nothing was added since: an equal request does not match it then. */
  readonly inFlight: boolean;
  /** The latest Turn. */
  readonly turnId: string;
}

/** A Turn of a Session. */
export interface TurnRecord extends Owner {
  readonly id: string;
  readonly sessionId: string;
}

/** What one Step adds to what its Session holds: messages of the transcript, or something recorded on the Step alone. */
export interface PartRecord extends CommittedContent {
  readonly organizationId: string;
  readonly sessionId: string;
  readonly stepId: string;
  readonly kind: "request" | "reply" | "instructions" | "reasoning";
  /** Where its first message is in the transcript, from 0; null for what is no part of it, as a reply that did not join. */
  readonly position: number | null;
  /** How many messages it is. */
  readonly count: number;
  /** A chain value after each message, 32 bytes each. */
  readonly chain: Uint8Array;
}

/** A Step with what only the rules look at. */
export interface StepRecord {
  /** Without corrections and without what providers said: both have records of their own. */
  readonly step: Step;
  /** The process that will settle it. */
  readonly processId: string;
  /** Messages in the history it was sent on. */
  readonly length: number;
  readonly openedSession: boolean;
  readonly branchedFromSessionId: string | null;
  /** How many holds its running attempt has. */
  readonly holds: number;
  /** What ended attempts were charged while their holds were kept for the next attempt. */
  readonly carried: Charge;
}

/** An amount held for an attempt. `settled` is null while it is held, then what it became. */
export interface HoldRecord extends BudgetCounterKey {
  readonly organizationId: string;
  readonly stepId: string;
  readonly attempt: number;
  readonly unit: HoldUnit;
  readonly amount: number;
  readonly settled: number | null;
}

/**
 * How far a counter moves: many Steps move one at a time, so that it is never written as one of them saw it. What is
 * settled stays within what can be counted exactly, and is never below 0.
 */
export interface CounterMove extends BudgetCounterKey {
  readonly unit: HoldUnit;
  /** What is settled is at least this before it moves. */
  readonly floor: number;
  readonly settled: number;
  readonly held: number;
  /** How much of `held` is taken now, and has to fit. */
  readonly taken: number;
  /** What settled and held may be at most, together, once it has moved; null where it moves in any case. */
  readonly limit: number | null;
}

/** What a provider said of an attempt that failed. */
export interface ErrorRecord extends CommittedContent {
  readonly organizationId: string;
  readonly sessionId: string;
  readonly stepId: string;
  readonly attempt: number;
}

/** A correction of one attempt, with how far it moved the counters that the attempt was charged to. */
export interface CorrectionRecord extends Pick<AppliedCorrection, "correction" | "delta"> {
  readonly organizationId: string;
  readonly stepId: string;
  readonly attempt: number;
  /** The attempt that took the holds it was charged to; null where none did. */
  readonly heldBy: number | null;
}

/** A stored response: linked to the one it continues, or with the messages before it where that one is gone. */
export interface ResponseRecord extends StoredResponse {
  readonly builtOn: string | null;
  /** Messages before its own that no stored response has any more: a JSON array in UTF-8. */
  readonly inherited: Uint8Array;
}

/** A decision and the owner of the request it was made on. */
export interface DecisionRecord {
  readonly owner: Owner;
  readonly decision: PolicyDecision;
}
