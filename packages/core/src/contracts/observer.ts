import type { DecisionRefusal } from "../domain/policy-decision.ts";
import type { StepOutcome } from "../domain/step.ts";

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
   * cannot be unwrapped by `keyId`, or it is not what was sealed for this organization and gateway.
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
  /** A request failed by our own fault or the store's. `where` is the error's name and its stack, without its message. */
  | {
      readonly type: "request.failed";
      readonly at: number;
      readonly requestId: string;
      readonly code: string;
      readonly where: string;
    }
  /** Something failed that no caller is told of: a settlement given up, a lease not renewed. */
  | { readonly type: "gateway.degraded"; readonly at: number; readonly what: string };

/** Is told of every event, synchronously. What it throws is ignored. */
export type Observer = (event: GatewayEvent) => void;
