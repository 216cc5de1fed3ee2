import type { BudgetRepository } from "../contracts/repositories.ts";
import type { Budget, BudgetRaise } from "../domain/budget.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** A budget with its raises, those that are over too. */
export interface RaisedBudget extends Budget {
  readonly raises: readonly BudgetRaise[];
}

/** All budgets that apply, and the version of those created at run time. */
export interface BudgetSnapshot {
  readonly budgets: readonly RaisedBudget[];
  readonly version: number;
}

/** The declared budgets and those of the store. The sheet may be old: opening a Step compares its version. */
export interface BudgetCache {
  /** Whether it has to be read first is known at once. */
  current(): BudgetSnapshot | Promise<BudgetSnapshot>;
  reload(): Promise<BudgetSnapshot>;
}

export function createBudgetCache(
  declared: readonly Budget[],
  repository: BudgetRepository,
): BudgetCache {
  let snapshot: BudgetSnapshot | Promise<BudgetSnapshot> | null = null;

  async function read(): Promise<BudgetSnapshot> {
    // The version first: a change in between then shows as a version that is too old, never as one too new.
    const version = await repository.version();
    const created = await repository.list();
    const taken = declared.find(({ id }) => created.some((budget) => budget.id === id));
    if (taken) throw declaredAndCreated(taken.id);
    const raises = Map.groupBy(await repository.raises(), ({ budgetId }) => budgetId);
    const budgets = [...declared, ...created].map((budget) => ({
      ...budget,
      raises: raises.get(budget.id) ?? [],
    }));
    return { budgets, version };
  }

  function reload(): Promise<BudgetSnapshot> {
    const reading = read();
    snapshot = reading;
    const end = (current: BudgetSnapshot | null): void => {
      if (snapshot === reading) snapshot = current;
    };
    reading.then(end, () => end(null));
    return reading;
  }

  return { current: () => snapshot ?? reload(), reload };
}

function declaredAndCreated(id: string): GatewayError {
  return new GatewayError(
    "invalid_configuration",
    `The budget ${id} is declared in the configuration and was created at run time: remove one of them.`,
  );
}
