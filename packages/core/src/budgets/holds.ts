import type { Budget, BudgetUnit, Hold } from "../domain/budget.ts";
import type { Owner } from "../domain/caller.ts";
import type { ModelId } from "../domain/model-id.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import { selects } from "../domain/pattern.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { RaisedBudget } from "./book.ts";
import { limitInForce } from "./limit-in-force.ts";
import { periodStart } from "./period.ts";

/** What a budget's scope is matched against. */
export interface Spender extends Owner {
  readonly model: ModelId;
  readonly connection: ConnectionOwnership;
}

/** Upper estimates in each unit; `usd` is null where no price is known. */
export interface Estimates {
  readonly usd: number | null;
  readonly tokens: number;
  readonly requests: number;
}

/** The budgets that count this spender. */
export function matchingBudgets(
  budgets: readonly RaisedBudget[],
  spender: Spender,
): readonly RaisedBudget[] {
  return budgets.filter(({ scope }) => {
    return (
      selects(scope.organization, spender.organizationId) &&
      selects(scope.user, spender.userId) &&
      selects(scope.key, spender.keyId) &&
      selects(scope.gateway, spender.model.gateway) &&
      selects(scope.connection, spender.connection) &&
      selectsModel(scope.model, spender.model)
    );
  });
}

/** The holds to take on matching budgets, in the one fixed order. Soft budgets hold nothing and count at the end. */
export function holdsOn(
  budgets: readonly RaisedBudget[],
  spender: Spender,
  { estimates, at }: { readonly estimates: Estimates; readonly at: number },
): readonly Hold[] {
  return budgets
    .map((budget) => ({
      budgetId: budget.id,
      subject: subjectOf(budget, spender),
      periodStart: periodStart(budget.period, at),
      unit: budget.unit,
      mode: budget.mode,
      limit: limitInForce(budget, at),
      amount: amountOf(budget, estimates),
    }))
    .sort(inLockOrder);
}

/** The same holds for other estimates. */
export function heldAt(holds: readonly Hold[], estimates: Estimates): readonly Hold[] {
  return holds.map((hold) => ({ ...hold, amount: amountOf(hold, estimates) }));
}

function amountOf({ mode, unit }: Pick<Hold, "mode" | "unit">, estimates: Estimates): number {
  if (unit === "requests") return estimates.requests;
  return mode === "soft" ? 0 : (estimates[unit] ?? 0);
}

/** Whether a hard budget counts in a unit among these. */
export function holdsHard(budgets: readonly Budget[], units: readonly BudgetUnit[]): boolean {
  return budgets.some(({ mode, unit }) => mode === "hard" && units.includes(unit));
}

function subjectOf({ scope }: Budget, spender: Spender): string {
  switch (scope.each) {
    case "organization":
      return spender.organizationId;
    case "user":
      return JSON.stringify([spender.organizationId, spender.userId]);
    case "key":
      return spender.keyId;
    default:
      return "";
  }
}

function inLockOrder(a: Hold, b: Hold): number {
  return (
    compare(a.budgetId, b.budgetId) ||
    compare(a.subject, b.subject) ||
    a.periodStart - b.periodStart
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
