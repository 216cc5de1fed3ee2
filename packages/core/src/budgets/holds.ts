import {
  type Budget,
  type BudgetScope,
  type BudgetUnit,
  type Hold,
  isBudgetUnit,
} from "../domain/budget.ts";
import type { Owner } from "../domain/caller.ts";
import type { ModelId } from "../domain/model-id.ts";
import { formatModelId } from "../domain/model-id.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import { lowerAscii, selects } from "../domain/pattern.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { RateLimitScope } from "../domain/rate-limit.ts";
import type { BudgetSnapshot } from "./budget-cache.ts";
import { limitInForce } from "./limit-in-force.ts";
import { periodEnd, periodStart } from "./period.ts";
import type { RateTemplate } from "./rate-limits.ts";

/** The caller and the model that a budget's scope is matched against. */
export interface Spender extends Owner {
  readonly model: ModelId;
  readonly connection: ConnectionOwnership;
}

/** Upper estimates in each unit. `usd` is null without a price. */
export interface Estimates {
  readonly usd: number | null;
  readonly tokens: number;
  readonly requests: number;
}

/** Whether a budget or a rate limit of this scope counts requests of a caller, to any model or to some. */
export function countsCaller(
  scope: Pick<RateLimitScope, "organization" | "user" | "key">,
  owner: Owner,
): boolean {
  return (
    selects(scope.organization, owner.organizationId) &&
    selects(scope.user, owner.userId) &&
    selects(scope.key, owner.keyId)
  );
}

/** Whether a budget or a rate limit of this scope counts a spender. */
function counts(scope: Omit<RateLimitScope, "each">, spender: Spender): boolean {
  return (
    countsCaller(scope, spender) &&
    selects(scope.gateway, spender.model.gateway) &&
    selects(scope.connection, spender.connection) &&
    selectsModel(scope.model, spender.model)
  );
}

/** Holds without their amounts, for the time in which they apply, and what they require of a call. */
export interface HoldTemplates {
  readonly from: number;
  readonly until: number;
  /** Always in the same order, to prevent deadlocks. Soft budgets hold nothing and count at the end. */
  readonly holds: readonly Hold[];
  readonly rates: readonly RateTemplate[];
  /** Whether a hard budget counts US dollars. Then the call needs a price. */
  readonly needsPrice: boolean;
  /** Whether a hard budget counts output. Then the output is capped. */
  readonly capsOutput: boolean;
}

/** The holds for a spender, valid until a period or a raise of one of its budgets ends. */
export function holdTemplates(
  { budgets, rateLimits }: Pick<BudgetSnapshot, "budgets" | "rateLimits">,
  spender: Spender,
  at: number,
): HoldTemplates {
  const matching = budgets.filter(({ scope }) => counts(scope, spender));
  const holds = matching.map((budget) => ({
    budgetId: budget.id,
    subject: subjectOf(budget.scope, spender),
    periodStart: periodStart(budget.period, at),
    unit: budget.unit,
    mode: budget.mode,
    limit: limitInForce(budget, at),
    amount: 0,
  }));
  const ends = matching.flatMap(({ period, raises }) => [
    periodEnd(period, periodStart(period, at)) ?? Number.POSITIVE_INFINITY,
    ...raises.flatMap(({ until }) => (until > at ? until : [])),
  ]);
  return {
    // A clock that is set back can return to an earlier period, or to a time before a raise ended.
    from: at,
    until: Math.min(Number.POSITIVE_INFINITY, ...ends),
    holds: holds.sort(byBudget),
    rates: rateLimits
      .filter(({ scope }) => counts(scope, spender))
      .map((rateLimit) => ({ rateLimit, subject: subjectOf(rateLimit.scope, spender) })),
    needsPrice: holdsHard(matching, ["usd"]),
    capsOutput: holdsHard(matching, ["usd", "tokens"]),
  };
}

/** Fills in the amounts for these estimates. Holds on rate limits keep theirs. */
export function withAmounts(holds: readonly Hold[], estimates: Estimates): readonly Hold[] {
  return holds.map((hold) => {
    const { mode, unit } = hold;
    return isBudgetUnit(unit) ? { ...hold, amount: amountOf({ mode, unit }, estimates) } : hold;
  });
}

function amountOf({ mode, unit }: Pick<Budget, "mode" | "unit">, estimates: Estimates): number {
  if (unit === "requests") return estimates.requests;
  return mode === "soft" ? 0 : (estimates[unit] ?? 0);
}

/** Whether a hard budget counts one of these units. */
function holdsHard(budgets: readonly Budget[], units: readonly BudgetUnit[]): boolean {
  return budgets.some(({ mode, unit }) => mode === "hard" && units.includes(unit));
}

function subjectOf({ each }: Pick<RateLimitScope, "each">, spender: Spender): string {
  if (each === "gateway") return spender.model.gateway;
  // Upstreams rarely tell the spellings of a name apart.
  if (each === "model") return lowerAscii(formatModelId(spender.model));
  return subjectOfCaller(each, spender);
}

/** The subject of the counter that counts a caller's requests, to whatever model. */
export function subjectOfCaller(each: BudgetScope["each"], owner: Owner): string {
  switch (each) {
    case "organization":
      return owner.organizationId;
    case "user":
      return JSON.stringify([owner.organizationId, owner.userId]);
    case "key":
      return owner.keyId;
    default:
      return "";
  }
}

/** Budgets have different ids. */
function byBudget(a: Hold, b: Hold): number {
  return a.budgetId < b.budgetId ? -1 : 1;
}
