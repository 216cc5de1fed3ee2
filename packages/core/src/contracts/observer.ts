import type { DecisionRefusal } from "../domain/policy-decision.ts";
import type { StepOutcome } from "../domain/step.ts";

/** A request that was answered with an error. */
export interface FailedRequest {
  readonly at: number;
  /** The answer's `x-request-id`. */
  readonly requestId: string;
  readonly code: string;
  /** The status of the error; in the middle of a stream, the one that it would have had before. */
  readonly status: number;
  /** The gateway's handler, such as `chatCompletions`; null where the path or the method has none. */
  readonly endpoint: string | null;
  /** The caller of the request; null if it was not known yet. */
  readonly organizationId: string | null;
  readonly keyId: string | null;
}

/** Something that happened, for logs, metrics and alerts. It holds ids and counts, never content or a secret. */
export type GatewayEvent =
  | {
      readonly type: "request.denied";
      readonly at: number;
      readonly organizationId: string;
      readonly decisionId: string;
      readonly code: string;
      /** What refused the request although the policy permitted it; null where the policy denied it. */
      readonly refusal: DecisionRefusal | null;
    }
  /**
   * A request was refused before any decision, with a status from 400 to 499: nothing of it is recorded. `param` is as the
   * answer has it: a field that the client named itself is shortened there.
   */
  | (FailedRequest & { readonly type: "request.refused"; readonly param: string | null })
  /**
   * A request was answered with an error, in place of an answer or in the middle of one: one event for each such request,
   * no matter who is at fault, next to the event that says more of it. A Step's record says why it failed.
   */
  | (FailedRequest & {
      readonly type: "answer.failed";
      /** Null where the request failed before a decision, and before a Step was opened. */
      readonly decisionId: string | null;
      readonly stepId: string | null;
    })
  | {
      readonly type: "step.opened";
      readonly at: number;
      readonly organizationId: string;
      readonly stepId: string;
      readonly sessionId: string;
      readonly decisionId: string;
      readonly model: string;
    }
  | {
      readonly type: "attempt.failed";
      readonly at: number;
      readonly organizationId: string;
      readonly stepId: string;
      readonly attempt: number;
      readonly reason: string;
    }
  | {
      readonly type: "step.settled";
      readonly at: number;
      readonly organizationId: string;
      readonly stepId: string;
      readonly outcome: StepOutcome;
      /** Why it did not complete; null for most that did. */
      readonly reason: string | null;
      /** The sums over all attempts, as `steps.get` gives them; the cost is null when the price of one is not known. */
      readonly totalTokens: number;
      readonly costNanoUsd: number | null;
      readonly durationMs: number;
    }
  | {
      readonly type: "budget.exhausted";
      readonly at: number;
      readonly organizationId: string;
      readonly budgetId: string;
    }
  /**
   * A Step was settled with which a budget's counter has reached a threshold of its `warnAt`, a part of the limit: once
   * for each threshold, counter and process. Amounts are in the budget's unit, `limit` with the raises in force.
   */
  | {
      readonly type: "budget.warned";
      readonly at: number;
      readonly organizationId: string;
      readonly budgetId: string;
      readonly subject: string;
      readonly threshold: number;
      readonly settled: number;
      readonly limit: number;
    }
  /**
   * An organization's own credential stays closed, so its requests on that gateway fail and no other's do: its data key
   * cannot be unwrapped by `keyId`, or it was not sealed for this organization and gateway.
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
  /** Something failed that no caller sees, such as a settlement or the renewal of a lease. */
  | { readonly type: "gateway.degraded"; readonly at: number; readonly what: string };

/** Receives every event, synchronously. Its errors are ignored. */
export type Observer = (event: GatewayEvent) => void;
