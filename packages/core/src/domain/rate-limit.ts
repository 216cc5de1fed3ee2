import { type BudgetScope, budgetSubjects } from "./budget.ts";

/** The time over which a rate limit spreads its requests or tokens. */
export type RatePeriod = (typeof ratePeriods)[number];

/** Every period of a rate limit, the shortest first. */
export const ratePeriods = ["second", "minute", "hour", "day"] as const;

/** Every unit of a rate limit. */
export const rateUnits = ["requests", "tokens", "steps"] as const;

/** Every value of `each` in a rate limit's scope. */
export const rateSubjects = [...budgetSubjects, "gateway", "model"] as const;

/** Which requests a rate limit counts. All given selectors must match, and `each` makes one counter per value. */
export interface RateLimitScope extends Omit<BudgetScope, "each"> {
  readonly each?: (typeof rateSubjects)[number];
}

/** A rate limit, from the configuration or created at run time. */
export interface RateLimit {
  /** Unique among rate limits and budgets. */
  readonly id: string;
  readonly scope: RateLimitScope;
  /** `steps` limits how many Steps are in flight at once. */
  readonly unit: (typeof rateUnits)[number];
  /** Requests or tokens per period, or Steps in flight; 0 rejects everything. */
  readonly limit: number;
  /** Null for Steps in flight. */
  readonly per: RatePeriod | null;
  /** Requests or tokens allowed at once; 0 for Steps in flight. */
  readonly burst: number;
}
