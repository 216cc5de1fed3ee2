/** What a budget counts: nanodollars, tokens or requests. */
export type BudgetUnit = "usd" | "tokens" | "requests";

/**
 * What a hold counts: the unit of its budget, or that of a rate limit. `steps` counts Steps in flight. The two paces are
 * microseconds: how long the rate limit takes to allow that many requests or tokens.
 */
export type HoldUnit = BudgetUnit | RateUnit;

/** Units that only rate limits count. */
export type RateUnit = "steps" | "requests_pace" | "tokens_pace";

/** Whether a hold is on a budget, and not on a rate limit. */
export function isBudgetUnit(unit: HoldUnit): unit is BudgetUnit {
  return unit === "usd" || unit === "tokens" || unit === "requests";
}

/** How long a budget's limit lasts, in UTC; a week starts on Monday and `total` never ends. */
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** Every period of a budget. */
export const budgetPeriods = ["hour", "day", "week", "month", "total"] as const;

/** `hard` refuses what would exceed the limit, `soft` records and warns. */
export type BudgetMode = "hard" | "soft";

/** Which requests a budget counts: all given selectors must match; `each` makes one counter per value. */
export interface BudgetScope {
  readonly organization?: string | readonly string[];
  readonly user?: string | readonly string[];
  readonly key?: string | readonly string[];
  readonly gateway?: string | readonly string[];
  readonly connection?: "platform" | "customer";
  readonly model?: string | readonly string[];
  readonly each?: "key" | "user" | "organization";
}

/** A budget, from the configuration or created at run time. */
export interface Budget {
  readonly id: string;
  readonly scope: BudgetScope;
  readonly unit: BudgetUnit;
  /** Nanodollars, tokens or requests; 0 refuses everything. */
  readonly limit: number;
  readonly period: BudgetPeriod;
  readonly mode: BudgetMode;
  /** Parts of the limit, above 0 and up to 1, at which observers get a warning once settled amounts reach them. */
  readonly warnAt: readonly number[];
}

/** A temporary raise of a budget's limit, declared or created, in the budget's unit. */
export interface BudgetRaise {
  readonly id: string;
  readonly budgetId: string;
  readonly unit: BudgetUnit;
  readonly amount: number;
  readonly at: number;
  /** The raise ends at this time. */
  readonly until: number;
  readonly actor: string | null;
}

/** One counter of a budget: its value (of `each`, else empty) in one period. */
export interface BudgetCounterKey {
  readonly budgetId: string;
  /** Empty, or the organization, user or key it counts for; a user is written with its organization. */
  readonly subject: string;
  /** Start of the period in milliseconds since the epoch; 0 for `total`, and below 0 for a rate limit. */
  readonly periodStart: number;
}

/** The value of a counter, in its unit. */
export interface BudgetCounter extends BudgetCounterKey {
  readonly unit: HoldUnit;
  /** Of a pace, the time in microseconds since the epoch until which the rate is used up. */
  readonly settled: number;
  readonly held: number;
}

/** A counter that differs from its ledger, which is the sum of its holds, settlements and corrections. */
export interface CounterDrift extends BudgetCounter {
  readonly ledger: { readonly settled: number; readonly held: number };
}

/** Counters against their ledger, all at one moment. */
export interface Reconciliation {
  /** How many counters there are. */
  readonly counters: number;
  /** Those that drifted, by budget, subject and period: as many as were asked for. */
  readonly drift: readonly CounterDrift[];
}

/** An amount to hold on one counter, with the limit it is held against. */
export interface Hold extends BudgetCounterKey {
  readonly unit: HoldUnit;
  readonly mode: BudgetMode;
  readonly limit: number;
  readonly amount: number;
  /** The least value that the counter has now. Only a pace has one: it catches up with the time, in microseconds. */
  readonly floor?: number;
}
