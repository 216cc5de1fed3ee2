import type { BudgetConfiguration } from "../budgets/read-budget.ts";
import type { Budget } from "../domain/budget.ts";
import type { Acting } from "./key-records.ts";
import type { List, Paging } from "./list.ts";
import type { OrganizationScope } from "./tenant.ts";

/** A budget and where it comes from. Its limit is in nanodollars, tokens or requests. */
export interface BudgetRecord extends Budget {
  readonly origin: "declared" | "created";
}

/** Where one counter of a budget stands in one period. */
export interface BudgetStatus {
  readonly budgetId: string;
  /** What `each` counts separately: a key's or organization's id, or `[organization, user]` as JSON; else empty. */
  readonly subject: string;
  readonly unit: Budget["unit"];
  readonly limit: number;
  readonly settled: number;
  readonly held: number;
  /** What is left; below 0 when a provider used more than was held. */
  readonly remaining: number;
  readonly periodStart: string;
  /** Null for a period without end. */
  readonly resetsAt: string | null;
}

/** Budgets, declared in the configuration or created at run time. */
export interface Budgets {
  /** Takes effect for the next request in every process. @throws GatewayError `invalid_argument` */
  create(budget: BudgetConfiguration & Acting): Promise<BudgetRecord>;
  /** @throws GatewayError `budget_not_found` */
  get(reference: { readonly id: string }): Promise<BudgetRecord>;
  /** By id: all, or those that can count what one organization spends. */
  list(filter?: Partial<OrganizationScope>, paging?: Paging): List<BudgetRecord>;
  /** Replaces scope, limit and mode; what is settled and held stays. A declared budget changes in the configuration. */
  update(budget: BudgetConfiguration & Acting): Promise<BudgetRecord>;
  /** Stops a created budget; its counters stay as history. */
  remove(reference: { readonly id: string } & Acting): Promise<void>;
  /** The counters of the current period, one per subject. @throws GatewayError `budget_not_found` */
  status(
    reference: { readonly id: string; readonly subject?: string },
    paging?: Paging,
  ): List<BudgetStatus>;
}
