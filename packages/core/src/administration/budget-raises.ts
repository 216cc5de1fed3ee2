import type { RaisedBudget } from "../budgets/budget-cache.ts";
import { toAmount } from "../budgets/read-budget.ts";
import type { BudgetRaise } from "../domain/budget.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { checked } from "./arguments.ts";
import { budgetLeaf } from "./budget-leaf.ts";
import type { BudgetRaiseRecord, Budgets, RaiseBudgetOptions } from "./budget-records.ts";
import { budgetRaising, budgetReference, raiseCancellation } from "./schemas.ts";
import { fromIso, toIso } from "./tenant.ts";

const maxRaises = 100;

/** Temporary raises of limits. `find` reads a budget as it stands in the store. */
export function createBudgetRaises(
  line: GatewayContext,
  find: (id: string) => Promise<RaisedBudget>,
): Pick<Budgets, "raise" | "raises" | "cancelRaise"> {
  const inForce = (budget: RaisedBudget): readonly BudgetRaise[] =>
    budget.raises.filter(({ until }) => until > line.clock.now());

  return {
    raise: checked(budgetRaising, async (written) => {
      const budget = await find(written.id);
      const raise = requireRaise(line, budget, written);
      const leaf = budgetLeaf(line, "budget.raised", { budget, raise, actor: written.actor });
      if (!(await line.store.budgets.insertRaise(raise, leaf, maxRaises)))
        throw wrong("id", `The budget ${budget.id} has ${maxRaises} raises already.`);
      await line.budgets.reload();
      return toRecord(raise);
    }),
    raises: checked(budgetReference, async ({ id }) => inForce(await find(id)).map(toRecord)),
    cancelRaise: checked(raiseCancellation, async ({ id, raiseId, actor }) => {
      const budget = await find(id);
      const raise = inForce(budget).find((candidate) => candidate.id === raiseId);
      const leaf = raise && budgetLeaf(line, "budget.raise_cancelled", { budget, raise, actor });
      const reference = { budgetId: id, id: raiseId };
      if (!leaf || !(await line.store.budgets.removeRaise(reference, leaf)))
        throw wrong("raiseId", `The budget ${id} has no such raise in force.`);
      await line.budgets.reload();
    }),
  };
}

function requireRaise(
  { ids, clock }: GatewayContext,
  budget: RaisedBudget,
  { by, until: written, actor }: RaiseBudgetOptions,
): BudgetRaise {
  const amount = toAmount(by);
  if (amount.amount === 0) throw wrong("by", "`by` must be above 0.");
  if (amount.unit !== budget.unit)
    throw wrong("by", `The budget ${budget.id} counts in ${budget.unit}.`);
  const at = clock.now();
  const until = fromIso(written);
  if (until <= at) throw wrong("until", "until must be a time to come.");
  return {
    id: ids.uuid(),
    budgetId: budget.id,
    ...amount,
    at,
    until,
    actor: actor ?? null,
  };
}

function toRecord({ at, until, ...raise }: BudgetRaise): BudgetRaiseRecord {
  return { ...raise, raisedAt: toIso(at), until: toIso(until) };
}

function wrong(param: string, message: string): GatewayError {
  return new GatewayError("invalid_argument", message, { param });
}
