import type { BudgetRepository } from "../contracts/store.ts";
import type { Budget } from "../domain/budget.ts";

/** All budgets that apply, and the version of those created at run time. */
export interface BudgetSheet {
  readonly budgets: readonly Budget[];
  readonly version: number;
}

/** The declared budgets and those of the store. The sheet may be old: opening a Step compares its version. */
export interface BudgetBook {
  current(): Promise<BudgetSheet>;
  reload(): Promise<BudgetSheet>;
}

export function createBudgetBook(
  declared: readonly Budget[],
  repository: BudgetRepository,
): BudgetBook {
  let sheet: Promise<BudgetSheet> | null = null;

  async function read(): Promise<BudgetSheet> {
    // The version first: a change in between then shows as a version that is too old, never as one too new.
    const version = await repository.version();
    return { budgets: [...declared, ...(await repository.list())], version };
  }

  function reload(): Promise<BudgetSheet> {
    const reading = read();
    sheet = reading;
    reading.catch(() => {
      if (sheet === reading) sheet = null;
    });
    return reading;
  }

  return { current: () => sheet ?? reload(), reload };
}
