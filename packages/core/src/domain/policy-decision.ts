import type { BudgetUnit } from "./budget.ts";
import type { RateLimit } from "./rate-limit.ts";

/** Who holds the account a gateway is reached with: the platform, or the caller's organization. */
export type ConnectionOwnership = "platform" | "customer";

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
  /** The request's `store`, as it was sent; absent when it was not. */
  readonly store?: boolean;
  readonly tools: boolean;
  readonly images: boolean;
  readonly structuredOutput: boolean;
  /** The service tier asked for; `default` for the standard one, whatever name was used, and where none was. */
  readonly serviceTier: string;
  /** The upper estimate that budgets hold. */
  readonly estimatedInputTokens: number;
  readonly estimatedOutputTokens: number;
  /** The most it can cost. Null when no price is known, or none of the service tier. */
  readonly estimatedCostNanoUsd: number | null;
}

/** The conditions of a permit, which the gateway has to meet. */
export interface Obligations {
  /** Model ids to try in order if the first one fails. Each gets its own decision and its own holds. */
  readonly fallbacks?: readonly string[];
  /** Caps the answer, and is always sent upstream. */
  readonly maxOutputTokens?: number;
  /** `digest` keeps hashes and counts of the transcript instead of its text. */
  readonly transcript?: "full" | "digest";
  /** The service tier the request is sent with, whatever it asked for; `default` for the standard one. */
  readonly serviceTier?: string;
  /** Requires the organization's own account. */
  readonly connection?: "customer";
}

/** The result of a policy. */
export interface Verdict {
  readonly effect: "permit" | "deny";
  /** Ids of the rules that determined the effect. */
  readonly rules: readonly string[];
  readonly reason?: string;
  readonly obligations?: Obligations;
}

/** What refused a request that the policy had permitted: a hold that did not fit, a missing price, a missing account. */
export type DecisionRefusal =
  | {
      readonly by: "budget";
      readonly budgetId: string;
      /** The counter's: the organization, user or key it counts for; empty where the budget has one counter. */
      readonly subject: string;
      readonly unit: BudgetUnit;
      /** What the request would have held and what its counter had left: nanodollars, tokens or requests. */
      readonly needed: number;
      readonly left: number;
    }
  | {
      readonly by: "rate_limit";
      readonly rateLimitId: string;
      /** The counter's: the key, user, organization, gateway or model it counts for; empty where there is one counter. */
      readonly subject: string;
      readonly unit: RateLimit["unit"];
      /** The needed and the remaining amount: requests, tokens or Steps in flight. */
      readonly needed: number;
      readonly left: number;
    }
  /** The member of the request whose price is unknown while a budget in US dollars applies. */
  | { readonly by: "price"; readonly param: "model" | "service_tier" }
  /** The organization has no account of its own on the gateway, or the gateway takes none. */
  | { readonly by: "connection" };

/** A recorded verdict. */
export interface PolicyDecision extends Verdict {
  readonly id: string;
  readonly at: number;
  readonly facts: PolicyFacts;
  /** Hash of the rules or the version the policy names; tells which policy decided. */
  readonly policyVersion: string;
  /** The request's first decision, for the decision on a fallback. */
  readonly firstDecisionId: string | null;
  /** What refused the request although the policy permitted it; null where nothing did, and where the policy denied. */
  readonly refusal: DecisionRefusal | null;
}
