import type { BudgetRepository, RateLimitRepository } from "../contracts/repositories.ts";
import type { Budget, BudgetRaise } from "../domain/budget.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** A budget with all its raises, including those that are over. */
export interface RaisedBudget extends Budget {
  readonly raises: readonly BudgetRaise[];
}

/** All budgets and rate limits, and the version of those created at run time. */
export interface BudgetSnapshot {
  readonly budgets: readonly RaisedBudget[];
  readonly rateLimits: readonly RateLimit[];
  readonly version: number;
}

/** The declared budgets and rate limits, and those in the store. A snapshot may be outdated: opening a Step compares its version. */
export interface BudgetCache {
  /** Returns a promise only if the budgets must be read first. */
  current(): BudgetSnapshot | Promise<BudgetSnapshot>;
  reload(): Promise<BudgetSnapshot>;
}

export function createBudgetCache(
  declared: { readonly budgets: readonly Budget[]; readonly rateLimits: readonly RateLimit[] },
  store: { readonly budgets: BudgetRepository; readonly rateLimits: RateLimitRepository },
): BudgetCache {
  let snapshot: BudgetSnapshot | Promise<BudgetSnapshot> | null = null;

  async function read(): Promise<BudgetSnapshot> {
    // Read the version first: a change in between then makes it too old, never too new.
    const version = await store.budgets.version();
    const [created, createdLimits] = [await store.budgets.list(), await store.rateLimits.list()];
    const ids = new Set([...created, ...createdLimits].map(({ id }) => id));
    const taken = [...declared.budgets, ...declared.rateLimits].find(({ id }) => ids.has(id));
    if (taken) throw declaredAndCreated(taken.id);
    const raises = Map.groupBy(await store.budgets.raises(), ({ budgetId }) => budgetId);
    const budgets = [...declared.budgets, ...created].map((budget) => ({
      ...budget,
      raises: raises.get(budget.id) ?? [],
    }));
    return { budgets, rateLimits: [...declared.rateLimits, ...createdLimits], version };
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
    `${id} is both declared in the configuration and created at run time. Remove one of them.`,
  );
}
