import type { BudgetUnit } from "./budget.ts";
import type { Obligations } from "./obligations.ts";
import type { RateLimit } from "./rate-limit.ts";

/** Who holds the account a gateway is reached with: the platform, or the caller's organization. */
export type ConnectionOwnership = (typeof connectionOwnerships)[number];

/** Every owner of an account. */
export const connectionOwnerships = ["platform", "customer"] as const;

/** The facts that a policy decides on. */
export interface PolicyFacts {
  readonly organization: string;
  readonly user: string;
  readonly key: string;
  readonly source: string;
  /** The effective data class. */
  readonly dataClass: string;
  /**
   * The Session that the Step would continue or branch from, with the most sensitive class under which its content was
   * handled. Absent for a new Session, and under a policy that doesn't read it.
   */
  readonly session?: { readonly dataClass: string };
  /** The three parts of the resolved model id. */
  readonly gateway: string;
  readonly vendor: string;
  readonly model: string;
  /** Whether the gateway's configuration lists the model. */
  readonly listed: boolean;
  readonly connection: ConnectionOwnership;
  /** The request's `store`, if it was sent. */
  readonly store?: boolean;
  readonly tools: boolean;
  readonly images: boolean;
  readonly structuredOutput: boolean;
  /** Present if the request is for embeddings. */
  readonly embeddings?: true;
  /** The requested service tier. `default` is the standard one, under any of its names, and if none was requested. */
  readonly serviceTier: string;
  /** The upper estimate for which budgets take holds. */
  readonly estimatedInputTokens: number;
  readonly estimatedOutputTokens: number;
  /** The most it can cost. Null if the price of the model or of its service tier is unknown. */
  readonly estimatedCostNanoUsd: number | null;
}

/** The result of a policy. */
export interface Verdict {
  readonly effect: "permit" | "deny";
  /** Ids of the rules that determined the effect. */
  readonly rules: readonly string[];
  readonly reason?: string;
  readonly obligations?: Obligations;
}

/** Why a request was refused although the policy permitted it: a hold that did not fit, a missing price or account. */
export type DecisionRefusal =
  | {
      readonly by: "budget";
      readonly budgetId: string;
      /** The organization, user or key that the counter is for; empty if the budget has only one counter. */
      readonly subject: string;
      readonly unit: BudgetUnit;
      /** The needed amount, and the amount its counter had left, in nanodollars, tokens or requests. */
      readonly needed: number;
      readonly left: number;
    }
  | {
      readonly by: "rate_limit";
      readonly rateLimitId: string;
      /** The key, user, organization, gateway or model that the counter is for; empty if there is only one counter. */
      readonly subject: string;
      readonly unit: RateLimit["unit"];
      /** The needed and the remaining amount, in requests, tokens or Steps in flight. */
      readonly needed: number;
      readonly left: number;
    }
  /** The member of the request whose price is unknown while a budget in US dollars applies. */
  | { readonly by: "price"; readonly param: "model" | "service_tier" }
  /** The organization has no account on the gateway, or the gateway takes none. */
  | { readonly by: "connection" };

/** How a virtual model chooses its target. */
export type TargetStrategy = "order" | "weight" | "latency" | "session";

/** A target that a call did not use, though it comes earlier in the order of choice. */
export interface PassedOver {
  readonly model: string;
  /**
   * `breaker_open`; `policy` if the policy denied it; `budget`, `rate_limit`, `price` or `connection` if that refused it; or
   * the reason for which its last attempt failed.
   */
  readonly reason: string;
  /** Its own decision. Null if none was made. */
  readonly decisionId: string | null;
}

/** Why a request for another name went to the model of its decision. */
export interface TargetChoice {
  /** The model id or alias that the client sent. */
  readonly requested: string;
  /** The virtual model behind it; null if an alias names the model itself. */
  readonly virtual: string | null;
  readonly by: TargetStrategy | "alias";
  /** The time to first output that `latency` knew, in milliseconds. Null if it knew none, and for all others. */
  readonly latencyMs: number | null;
  /** In the order of choice. */
  readonly passedOver: readonly PassedOver[];
}

/** A recorded verdict. */
export interface PolicyDecision extends Verdict {
  readonly id: string;
  readonly at: number;
  readonly facts: PolicyFacts;
  /** Identifies the policy that decided: its `version`, or a hash of its rules. */
  readonly policyVersion: string;
  /** For the decision on a fallback, the request's first decision. */
  readonly firstDecisionId: string | null;
  /** Why the request was refused although the policy permitted it. Null if it wasn't, or if the policy denied it. */
  readonly refusal: DecisionRefusal | null;
  /** Why this model was chosen. Absent if the client or a fallback named it. */
  readonly choice?: TargetChoice;
}
