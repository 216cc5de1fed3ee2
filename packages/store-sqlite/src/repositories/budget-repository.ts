import type { BudgetRepository, EvidenceLeaf } from "@tollgate/core/store";
import {
  administration,
  budgetFromRow,
  budgetToRow,
  type Conditions,
  counterFromRow,
  driftFromRow,
  leafToRow,
  lists,
  opening,
  raiseFromRow,
  raiseToRow,
  readRow,
  reconciling,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import type { Transaction } from "../database/transaction.ts";
import { readPage } from "./read-page.ts";

/** No raise lasts longer. */
const endOfTime = Number.MAX_SAFE_INTEGER;

export function createBudgetRepository(
  database: Database,
  conditions: Conditions,
): BudgetRepository {
  /** A change moves the version and leaves its leaf; a change of no row leaves nothing. */
  const change = (
    leaf: EvidenceLeaf,
    apply: (transaction: Transaction) => number,
  ): Promise<boolean> =>
    database.write((transaction) => {
      if (apply(transaction) === 0) return false;
      transaction.budgetsChanged();
      transaction.run(opening.insertLeaf, leafToRow(leaf, transaction.next()));
      return true;
    });
  return {
    version: () =>
      database.read((connection) =>
        readRow(connection.get(administration.readState, {})).integer("budgets_version"),
      ),
    list: () =>
      database.read((connection) => connection.all(administration.budgets, {}).map(budgetFromRow)),
    insert: (budget, leaf) =>
      change(leaf, (transaction) => {
        const row = budgetToRow(budget, transaction.next());
        if (transaction.run(administration.insertBudget, row) === 0) return 0;
        forgetRaises(transaction, budget.id);
        return 1;
      }),
    update: (budget, leaf) =>
      change(leaf, (transaction) =>
        transaction.run(administration.updateBudget, budgetToRow(budget, 0)),
      ),
    remove: (id, leaf) =>
      change(leaf, (transaction) => {
        if (transaction.run(administration.removeBudget, { id }) === 0) return 0;
        forgetRaises(transaction, id);
        return 1;
      }),
    raises: () =>
      database.read((connection) => connection.all(administration.raises, {}).map(raiseFromRow)),
    insertRaise: (raise, leaf, most) =>
      change(leaf, (transaction) => {
        const row = raiseToRow(raise, transaction.next());
        const left = readRow(transaction.get(administration.raisesLeft, row)).integer("raises");
        if (left >= most) return 0;
        if (transaction.run(administration.insertRaise, row) === 0) return 0;
        transaction.run(administration.forgetRaises, row);
        return 1;
      }),
    removeRaise: ({ budgetId, id }, leaf) =>
      change(leaf, (transaction) =>
        transaction.run(administration.removeRaise, { budget_id: budgetId, id }),
      ),
    reconcile: ({ limit }) =>
      database.read((connection) => ({
        counters: readRow(connection.get(reconciling.counters, {})).integer("counters"),
        drift: connection.all(reconciling.drift, { limit }).map(driftFromRow),
      })),
    counters: (query, paging) =>
      readPage(database, lists.counters, conditions.ofCounters(query), paging, counterFromRow),
  };
}

function forgetRaises(transaction: Transaction, budgetId: string): void {
  transaction.run(administration.forgetRaises, { budget_id: budgetId, at: endOfTime });
}
