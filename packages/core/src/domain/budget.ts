/** The unit that a budget counts: nanodollars, tokens or requests. */
export type BudgetUnit = (typeof budgetUnits)[number];

/** Every unit of a budget. */
export const budgetUnits = ["usd", "tokens", "requests"] as const;

/**
 * The unit of a hold's budget or rate limit. `steps` counts Steps in flight. The two paces are times in microseconds: how
 * long the rate limit takes to allow that many requests or tokens.
 */
export type HoldUnit = BudgetUnit | RateUnit;

/** Units that only rate limits count. */
export type RateUnit = "steps" | "requests_pace" | "tokens_pace";

const unitsOfBudgets: readonly HoldUnit[] = budgetUnits;

/** Whether a hold in this unit is on a budget, not on a rate limit. */
export function isBudgetUnit(unit: HoldUnit): unit is BudgetUnit {
  return unitsOfBudgets.includes(unit);
}

/** The period a budget's limit is for, in UTC. A week starts on Monday, and `total` never ends. */
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** Every period of a budget. */
export const budgetPeriods = ["hour", "day", "week", "month", "total"] as const;

/** `hard` refuses requests that would exceed the limit. `soft` only records and warns. */
export type BudgetMode = (typeof budgetModes)[number];

/** Every mode of a budget. */
export const budgetModes = ["hard", "soft"] as const;

/** Every value of `each` in a budget's scope. */
export const budgetSubjects = ["key", "user", "organization"] as const;

/** Which requests a budget counts. All given selectors must match, and `each` makes one counter per value. */
export interface BudgetScope {
  readonly organization?: string | readonly string[];
  readonly user?: string | readonly string[];
  readonly key?: string | readonly string[];
  readonly gateway?: string | readonly string[];
  readonly connection?: "platform" | "customer";
  readonly model?: string | readonly string[];
  readonly each?: (typeof budgetSubjects)[number];
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
  /** Fractions of the limit, above 0 and up to 1. Observers get a warning when the settled amount reaches one. */
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

/** Identifies one counter of a budget or a rate limit, in one period. */
export interface BudgetCounterKey {
  readonly budgetId: string;
  /** The value of `each` that it counts for, or empty without `each`. A user is written with its organization. */
  readonly subject: string;
  /** Start of the period in milliseconds since the epoch; 0 for `total`, and below 0 for a rate limit. */
  readonly periodStart: number;
}

/** The value of a counter, in its unit. */
export interface BudgetCounter extends BudgetCounterKey {
  readonly unit: HoldUnit;
  /** For a pace, the time in microseconds since the epoch until which the rate is used up. */
  readonly settled: number;
  readonly held: number;
}

/** A counter that differs from its ledger, the sum of its holds, settlements and corrections. */
export interface CounterDrift extends BudgetCounter {
  readonly ledger: { readonly settled: number; readonly held: number };
}

/** The comparison of all counters with their ledgers. */
export interface Reconciliation {
  /** How many counters there are. */
  readonly counters: number;
  /** Counters that differ, sorted by budget, subject and period, up to the requested number. */
  readonly drift: readonly CounterDrift[];
}

/** An amount to hold on one counter, and the limit it must fit into. */
export interface Hold extends BudgetCounterKey {
  readonly unit: HoldUnit;
  readonly mode: BudgetMode;
  readonly limit: number;
  readonly amount: number;
  /** The counter first rises to at least this value. Only a pace has one: the current time in microseconds. */
  readonly floor?: number;
}

/** Whether two keys name the same counter. */
export function isSameCounter(a: BudgetCounterKey, b: BudgetCounterKey): boolean {
  return a.budgetId === b.budgetId && a.subject === b.subject && a.periodStart === b.periodStart;
}
