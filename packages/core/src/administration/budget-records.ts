import type { BudgetConfiguration, BudgetLimit } from "../budgets/read-budget.ts";
import type { Budget, CounterDrift } from "../domain/budget.ts";
import type { WithActor } from "./key-records.ts";
import type { List, Paging } from "./list.ts";
import type { OrganizationScope } from "./tenant.ts";

/** A budget and where it comes from. Its limit is in nanodollars, tokens or requests. */
export interface BudgetRecord extends Budget {
  readonly origin: "declared" | "created";
}

/** A temporary raise of a budget's limit, in the budget's unit. */
export interface BudgetRaiseRecord {
  readonly id: string;
  readonly budgetId: string;
  readonly unit: Budget["unit"];
  /** Nanodollars, tokens or requests. */
  readonly amount: number;
  /** ISO 8601: when it was made, and from when on the limit is what it was. */
  readonly raisedAt: string;
  readonly until: string;
  readonly actor: string | null;
}

/** Where one counter of a budget stands in one period. */
export interface BudgetStatus {
  readonly budgetId: string;
  /** What `each` counts separately: a key's or organization's id, or `[organization, user]` as JSON; else empty. */
  readonly subject: string;
  readonly unit: Budget["unit"];
  /** The limit in force now: the budget's own and its raises. */
  readonly limit: number;
  readonly settled: number;
  readonly held: number;
  /** What is left; below 0 when a provider used more than was held, or the limit was lowered. */
  readonly remaining: number;
  readonly periodStart: string;
  /** Null for a period without end. */
  readonly resetsAt: string | null;
}

/** Which counters to show. */
export interface BudgetStatusQuery {
  readonly id: string;
  /** One of those that `each` counts, as BudgetStatus writes it; default all. */
  readonly subject?: string;
  /** ISO 8601: a time of the period to show; default now. */
  readonly at?: string;
}

/** Budgets, declared in the configuration or created at run time. */
export interface Budgets {
  /** Takes effect for the next request in every process. @throws GatewayError `invalid_argument` */
  create(budget: BudgetConfiguration & WithActor): Promise<BudgetRecord>;
  /** @throws GatewayError `budget_not_found` */
  get(reference: { readonly id: string }): Promise<BudgetRecord>;
  /** By id: all, or those that can count what one organization spends. */
  list(filter?: Partial<OrganizationScope>, paging?: Paging): List<BudgetRecord>;
  /**
   * Replaces scope, limit, mode and warnings; what is settled and held stays. A declared budget changes in the
   * configuration.
   */
  update(budget: BudgetConfiguration & WithActor): Promise<BudgetRecord>;
  /** Stops a created budget and its raises; its counters stay as history. */
  remove(reference: { readonly id: string } & WithActor): Promise<void>;
  /** The counters of a period, one per subject that has one. @throws GatewayError `budget_not_found` */
  status(query: BudgetStatusQuery, paging?: Paging): List<BudgetStatus>;
  /**
   * Raises the limit of a budget, declared or created, until a time: for the next request in every process. Raises add
   * up, at most 100 at once. @throws GatewayError `budget_not_found`, `invalid_argument` (another unit than the
   * budget's, an amount that is not above 0, a time that is not to come)
   */
  raise(raise: RaiseBudgetOptions): Promise<BudgetRaiseRecord>;
  /** The raises in force, in the order they were made. @throws GatewayError `budget_not_found` */
  raises(reference: { readonly id: string }): Promise<readonly BudgetRaiseRecord[]>;
  /** Ends a raise at once. @throws GatewayError `budget_not_found`, `invalid_argument` where it is not in force */
  cancelRaise(
    reference: { readonly id: string; readonly raiseId: string } & WithActor,
  ): Promise<void>;
  /**
   * Computes every counter anew from its ledger, while requests run, and says which differ: none, unless something else
   * wrote to the store. It changes nothing, and reads every hold there is: run it from the command line where there
   * are millions, since a SQLite store answers nothing else of its process meanwhile.
   */
  reconcile(): Promise<BudgetReconciliation>;
}

/** A counter that does not stand where its ledger has it, in the budget's unit. */
export interface BudgetDrift {
  readonly budgetId: string;
  readonly subject: string;
  readonly unit: CounterDrift["unit"];
  readonly periodStart: string;
  /** Where the counter stands. */
  readonly settled: number;
  readonly held: number;
  /** Where it should, by the holds on it, what they settled, and their corrections. */
  readonly ledger: { readonly settled: number; readonly held: number };
}

/** All counters compared with their ledger. */
export interface BudgetReconciliation {
  /** How many counters there are. */
  readonly counters: number;
  /** The first 1,000 that drifted; none where all is well. */
  readonly drift: readonly BudgetDrift[];
}

/** A raise as it is asked for. */
export interface RaiseBudgetOptions extends WithActor {
  /** The budget's id. */
  readonly id: string;
  /** An amount above 0 in the budget's unit; dollars as a number or a decimal string. */
  readonly by: BudgetLimit;
  /** ISO 8601. */
  readonly until: string;
}
