import type { Store } from "../contracts/store.ts";
import type { BudgetCounter, BudgetCounterKey } from "../domain/budget.ts";
import type { Owner } from "../domain/caller.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import type { Clock } from "../kernel/clock.ts";
import type { BudgetCache, BudgetSnapshot, RaisedBudget } from "./budget-cache.ts";
import { countsCaller, subjectOfCaller } from "./holds.ts";
import { limitInForce } from "./limit-in-force.ts";
import { periodEnd, periodStart } from "./period.ts";
import { type RateState, rateCounter, rateStateOf } from "./rate-limits.ts";

/** The rest of a budget that a caller may use. */
export interface BudgetAllowance {
  readonly budget: RaisedBudget;
  /** The limit now, raises included. */
  readonly limit: number;
  /** Below 0 if a provider used more than was held, or the limit was lowered. */
  readonly remaining: number;
  /** Null if the period never ends. */
  readonly resetsAt: number | null;
}

/** The rest of a rate limit that a caller may use; null if each gateway or model has its own counter. */
export interface RateAllowance {
  readonly rateLimit: RateLimit;
  readonly state: RateState | null;
}

/** The budgets and rate limits that count a caller, and whether it has more than these. */
export interface Allowances {
  readonly budgets: readonly BudgetAllowance[];
  readonly rateLimits: readonly RateAllowance[];
  readonly hasMore: boolean;
}

/** The state that allowances are read from. */
interface Source {
  readonly store: Pick<Store, "budgets">;
  readonly budgets: BudgetCache;
  readonly clock: Clock;
}

/** How many budgets, and how many rate limits, are read. */
const maxRead = 100;

/** Reads the budgets and rate limits that count a caller, with all that other processes have created or spent. */
export async function allowancesOf(source: Source, owner: Owner): Promise<Allowances> {
  const current = await latest(source);
  const budgets = current.budgets.filter(({ scope }) => countsCaller(scope, owner));
  const rateLimits = current.rateLimits.filter(({ scope }) => countsCaller(scope, owner));
  return {
    budgets: await eachOf(budgets, (budget) => budgetAllowance(source, owner, budget)),
    rateLimits: await eachOf(rateLimits, (limit) => rateAllowance(source, owner, limit)),
    hasMore: budgets.length > maxRead || rateLimits.length > maxRead,
  };
}

async function latest({ store, budgets }: Source): Promise<BudgetSnapshot> {
  const version = await store.budgets.version();
  const known = await budgets.current();
  return known.version === version ? known : budgets.reload();
}

/** One after the other, so that a caller takes one connection of the store. */
async function eachOf<Limit, Allowance>(
  limits: readonly Limit[],
  readOne: (limit: Limit) => Promise<Allowance>,
): Promise<readonly Allowance[]> {
  const allowances: Allowance[] = [];
  for (const limit of limits.slice(0, maxRead)) allowances.push(await readOne(limit));
  return allowances;
}

async function budgetAllowance(
  source: Source,
  owner: Owner,
  budget: RaisedBudget,
): Promise<BudgetAllowance> {
  const now = source.clock.now();
  const start = periodStart(budget.period, now);
  const subject = subjectOfCaller(budget.scope.each, owner);
  const counter = { budgetId: budget.id, subject, periodStart: start };
  const { settled, held } = await counterOf(source, counter);
  const limit = limitInForce(budget, now);
  const resetsAt = periodEnd(budget.period, start);
  return { budget, limit, remaining: limit - settled - held, resetsAt };
}

async function rateAllowance(
  source: Source,
  owner: Owner,
  rateLimit: RateLimit,
): Promise<RateAllowance> {
  const { each } = rateLimit.scope;
  if (each === "gateway" || each === "model") return { rateLimit, state: null };
  const counter = await counterOf(source, rateCounter(rateLimit, subjectOfCaller(each, owner)));
  return { rateLimit, state: rateStateOf(rateLimit, counter, source.clock.now()) };
}

/** A counter that nothing has counted yet is 0. */
async function counterOf(
  { store }: Source,
  key: BudgetCounterKey,
): Promise<Pick<BudgetCounter, "settled" | "held">> {
  const { data } = await store.budgets.counters(key, { cursor: null, limit: 1 });
  return data[0] ?? { settled: 0, held: 0 };
}
