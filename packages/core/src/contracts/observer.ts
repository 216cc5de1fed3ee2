import type { HoldUnit } from "../domain/budget.ts";
import type { ChangeKind } from "../domain/change-kind.ts";
import type { DecisionRefusal } from "../domain/policy-decision.ts";
import type { AttemptEnd, EndpointName, StepOutcome } from "../domain/step.ts";

/** A request that got an error. */
export interface FailedRequest {
  readonly at: number;
  /** The answer's `x-request-id`. */
  readonly requestId: string;
  readonly code: string;
  /** The HTTP status of the error. In the middle of a stream, the status it would have had before the stream began. */
  readonly status: number;
  /** The gateway's handler, such as `chatCompletions`. Null if no handler matches the path and method. */
  readonly endpoint: string | null;
  /** The caller's organization. Null if the caller was not known yet. */
  readonly organizationId: string | null;
  readonly keyId: string | null;
}

/** An attempt, and the Step and the request that it belongs to. */
export interface ObservedAttempt {
  readonly at: number;
  readonly requestId: string;
  readonly organizationId: string;
  readonly keyId: string;
  readonly stepId: string;
  /** Counted from 1 within its Step. */
  readonly attempt: number;
  /** The canonical id of its model. */
  readonly model: string;
  /** The decision that permitted it: the Step's, or the fallback's own. */
  readonly decisionId: string;
}

/** An event for logs, metrics and alerts. It contains ids and counts, never content or a secret. */
export type GatewayEvent =
  /** A request arrived. `traceparent` is its header of that name (W3C Trace Context); null if absent or invalid. */
  | {
      readonly type: "request.received";
      readonly at: number;
      readonly requestId: string;
      readonly traceparent: string | null;
    }
  /**
   * A request got its status and headers, and the body of a stream follows. `code` is null unless it is an error. It is
   * `client_closed`, with status 499, if the client left first.
   */
  | (Omit<FailedRequest, "code"> & {
      readonly type: "request.answered";
      readonly code: string | null;
      readonly durationMs: number;
    })
  | {
      readonly type: "request.denied";
      readonly at: number;
      readonly requestId: string;
      readonly organizationId: string;
      readonly userId: string;
      readonly keyId: string;
      readonly source: string;
      readonly model: string;
      readonly dataClass: string;
      readonly decisionId: string;
      /** The rules of the policy that decided. */
      readonly rules: readonly string[];
      readonly code: string;
      /** Why the request was refused although the policy permitted it. Null if the policy denied it. */
      readonly refusal: DecisionRefusal | null;
    }
  /**
   * A request was refused with a status from 400 to 499 before any decision, so it leaves no record. `param` is the same as
   * in the answer, where a name that the client made up is shortened.
   */
  | (FailedRequest & { readonly type: "request.refused"; readonly param: string | null })
  /**
   * A request got an error instead of an answer, or in the middle of one. Each such request has one of these events, no
   * matter who is at fault, in addition to the more specific one. A Step's record says why it failed.
   */
  | (FailedRequest & {
      readonly type: "answer.failed";
      /** Null if the request failed before a decision, or before a Step was opened. */
      readonly decisionId: string | null;
      readonly stepId: string | null;
    })
  /** A request with an `Idempotency-Key` got the kept answer of an earlier one. It opened no Step. */
  | {
      readonly type: "request.replayed";
      readonly at: number;
      /** The answer's `x-request-id`. */
      readonly requestId: string;
      readonly organizationId: string;
      readonly keyId: string;
      /** The Step that the answer is from, and its decision. */
      readonly stepId: string;
      readonly decisionId: string;
    }
  | {
      readonly type: "step.opened";
      readonly at: number;
      readonly requestId: string;
      readonly organizationId: string;
      readonly keyId: string;
      readonly stepId: string;
      /** Null for a Step without a Session. */
      readonly sessionId: string | null;
      readonly decisionId: string;
      readonly endpoint: EndpointName;
      readonly stream: boolean;
      readonly model: string;
      readonly dataClass: string;
      /** How many amounts it holds in budgets and rate limits. */
      readonly holds: number;
      /** How long the store took to write it. */
      readonly writeMs: number;
    }
  /** Once for every attempt, before its provider is asked. */
  | (ObservedAttempt & { readonly type: "attempt.started" })
  /** Once for every attempt, unless its process died: its usage, before it is durable. Another may follow one that failed. */
  | (ObservedAttempt & Omit<AttemptEnd, "error"> & { readonly type: "attempt.ended" })
  | {
      readonly type: "step.settled";
      readonly at: number;
      /** Null if the Step was recovered: the process that answered its request is gone. */
      readonly requestId: string | null;
      readonly organizationId: string;
      readonly keyId: string;
      readonly stepId: string;
      readonly outcome: StepOutcome;
      /** Why it did not complete. Null for most Steps that did. */
      readonly reason: string | null;
      /** The sums over all attempts, as in `steps.get`. The cost is null if the price of any attempt is unknown. */
      readonly totalTokens: number;
      readonly costNanoUsd: number | null;
      /** How many attempts it made. */
      readonly attempts: number;
      /** The canonical id of the last attempt's model. */
      readonly model: string;
      readonly finishReason: string | null;
      readonly durationMs: number;
      /** How long the store took to write its end; null if it was recovered. */
      readonly writeMs: number | null;
    }
  /** An amount did not fit into a budget. */
  | (ObservedCounter & { readonly type: "budget.exhausted" })
  /**
   * A settled Step brought a counter of a budget to a threshold of `warnAt`, a fraction of the limit. Reported once per
   * threshold, counter and process.
   */
  | (ObservedCounter & {
      readonly type: "budget.warned";
      readonly threshold: number;
      readonly settled: number;
    })
  /**
   * The breaker of a model opened, lets one call through as a probe, or closed because its probe was answered. `model` is
   * the full id. Each process has its own breakers. On a customer-owned connection, each organization has its own, too, and
   * `organizationId` names it; null for the platform's account.
   */
  | {
      readonly type: "breaker.opened" | "breaker.half_opened" | "breaker.closed";
      readonly at: number;
      readonly model: string;
      readonly organizationId: string | null;
    }
  /**
   * An organization's own credential can't be decrypted: `keyId` can't unwrap its data key, or it was not sealed for this
   * organization and gateway. Only this organization's requests on this gateway fail.
   */
  | {
      readonly type: "connection.unavailable";
      readonly at: number;
      readonly organizationId: string;
      readonly gateway: string;
      readonly connectionId: string;
      readonly keyId: string;
      readonly reason: "key_unavailable" | "credential_damaged";
    }
  /** A request failed because of an internal error or the store's. `where` is the error's name and its stack, without its message. */
  | {
      readonly type: "request.failed";
      readonly at: number;
      readonly requestId: string;
      readonly code: string;
      readonly where: string;
    }
  /** Background work failed, such as a settlement or the renewal of a lease. No caller sees it. */
  | { readonly type: "gateway.degraded"; readonly at: number; readonly what: string }
  /** Background work that had failed works again: the lease, sealing or a kind of maintenance. */
  | { readonly type: "gateway.restored"; readonly at: number; readonly what: string }
  /** Maintenance ran to its end, automatically or called by the host. `count` is how many records it affected. */
  | {
      readonly type: "maintenance.ran";
      readonly at: number;
      readonly what: MaintenanceTask;
      readonly count: number;
      readonly durationMs: number;
    }
  /** A checkpoint of an organization's log is durable. Keep `note` outside the database, as an anchor. */
  | {
      readonly type: "checkpoint.signed";
      readonly at: number;
      /** Null for the log of the leaves that belong to no organization. */
      readonly organizationId: string | null;
      /** Counts the log's checkpoints, from 0. */
      readonly number: number;
      /** How many leaves it covers. */
      readonly size: number;
      /** The signed note (C2SP `tlog-checkpoint`). */
      readonly note: string;
    }
  /** An administrative change is durable. Its members are those of `changes.list`. */
  | {
      readonly type: "administered";
      readonly at: number;
      readonly kind: ChangeKind;
      readonly organizationId: string | null;
      /** The id of the key, connection, budget, rate limit or Step, or the version of the policy. */
      readonly subject: string | null;
      readonly actor: string | null;
    };

/** A counter of a budget. Amounts are in the budget's unit. */
interface ObservedCounter {
  readonly at: number;
  readonly organizationId: string;
  readonly budgetId: string;
  /** The value of `each` that it counts for. Empty without `each`. */
  readonly subject: string;
  readonly unit: HoldUnit;
  /** Includes the raises in force. */
  readonly limit: number;
  /** Start of the period; 0 for `total`. */
  readonly periodStart: number;
}

/** A kind of recurring maintenance that affects records. */
export type MaintenanceTask = "recovery" | "rollup" | "sweep";

/** Receives every event, synchronously. Its errors are ignored. */
export type Observer = (event: GatewayEvent) => void;

/** An attempt whose provider is about to be asked. */
export interface TracedAttempt {
  readonly requestId: string;
  readonly stepId: string;
  /** Counted from 1 within its Step. */
  readonly attempt: number;
}

/**
 * Returns the W3C `traceparent` header for an attempt, or null for none. Called once for each attempt, synchronously. An
 * invalid header counts as none, and errors are ignored.
 */
export type TraceParent = (attempt: TracedAttempt) => string | null;

/** A W3C Trace Context header, version 00 or later. */
const traceParent = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Whether a value is a valid `traceparent` header. */
export function isTraceParent(value: unknown): value is string {
  return typeof value === "string" && traceParent.test(value);
}
