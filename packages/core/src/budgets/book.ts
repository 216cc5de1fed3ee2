import type { BudgetRepository } from "../contracts/repositories.ts";
import type { Budget, BudgetRaise } from "../domain/budget.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** A budget with its raises, those that are over too. */
export interface RaisedBudget extends Budget {
  readonly raises: readonly BudgetRaise[];
}

/** All budgets that apply, and the version of those created at run time. */
export interface BudgetSheet {
  readonly budgets: readonly RaisedBudget[];
  readonly version: number;
}

/** The declared budgets and those of the store. The sheet may be old: opening a Step compares its version. */
export interface BudgetBook {
  /** Whether it has to be read first is known at once. */
  current(): BudgetSheet | Promise<BudgetSheet>;
  reload(): Promise<BudgetSheet>;
}

export function createBudgetBook(
  declared: readonly Budget[],
  repository: BudgetRepository,
): BudgetBook {
  let sheet: BudgetSheet | Promise<BudgetSheet> | null = null;

  async function read(): Promise<BudgetSheet> {
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

  function reload(): Promise<BudgetSheet> {
    const reading = read();
    sheet = reading;
    const end = (current: BudgetSheet | null): void => {
      if (sheet === reading) sheet = current;
    };
    reading.then(end, () => end(null));
    return reading;
  }

  return { current: () => sheet ?? reload(), reload };
}

function declaredAndCreated(id: string): GatewayError {
  return new GatewayError(
    "invalid_configuration",
    `The budget ${id} is declared in the configuration and was created at run time: remove one of them.`,
  );
}
