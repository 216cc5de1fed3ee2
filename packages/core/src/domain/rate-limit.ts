import type { BudgetScope } from "./budget.ts";

/** How long a rate limit's number of requests or tokens is spread over. */
export type RatePeriod = "second" | "minute" | "hour" | "day";

/** Which requests a rate limit counts: all given selectors must match; `each` counts every value apart. */
export interface RateLimitScope extends Omit<BudgetScope, "each"> {
  readonly each?: "key" | "user" | "organization" | "gateway" | "model";
}

/** A rate limit, from the configuration or created at run time. */
export interface RateLimit {
  /** Unique among rate limits and budgets. */
  readonly id: string;
  readonly scope: RateLimitScope;
  /** `steps` limits how many Steps are in flight at once. */
  readonly unit: "requests" | "tokens" | "steps";
  /** Requests or tokens per period, or Steps in flight; 0 rejects everything. */
  readonly limit: number;
  /** Null for Steps in flight. */
  readonly per: RatePeriod | null;
  /** Requests or tokens that are allowed at once; 0 for Steps in flight. */
  readonly burst: number;
}
