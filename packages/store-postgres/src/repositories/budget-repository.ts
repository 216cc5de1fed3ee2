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
import { longestAnswer } from "../database/connection.ts";
import type { Database } from "../database/database.ts";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";
import { readPage } from "./read-page.ts";

/** No raise lasts longer. */
const endOfTime = Number.MAX_SAFE_INTEGER;

const countChange = "UPDATE store_state SET budgets_version = budgets_version + 1 WHERE id = 1";

export function createBudgetRepository(
  database: Database,
  conditions: Conditions,
): BudgetRepository {
  /** A change moves the version and leaves its leaf; a change of no row leaves nothing. */
  const change = (
    leaf: EvidenceLeaf,
    apply: (transaction: Transaction) => Promise<number>,
  ): Promise<boolean> =>
    database.write(
      async (transaction) => {
        await transaction.get(locking.budgets, {});
        if ((await apply(transaction)) === 0) return false;
        await transaction.run(countChange, {});
        await transaction.run(opening.insertLeaf, leafToRow(leaf, await transaction.next()));
        return true;
      },
      // What it returns says whether there was a row, and of its own change it would say the opposite.
      { evenIfDone: false },
    );
  return {
    version: () =>
      database.read(async (connection) =>
        readRow(await connection.get(administration.readState, {})).integer("budgets_version"),
      ),
    list: () =>
      database.read(async (connection) =>
        (await connection.all(administration.budgets, {})).map(budgetFromRow),
      ),
    insert: (budget, leaf) =>
      change(leaf, async (transaction) => {
        const row = budgetToRow(budget, await transaction.next());
        if ((await transaction.run(administration.insertBudget, row)) === 0) return 0;
        await forgetRaises(transaction, budget.id);
        return 1;
      }),
    update: (budget, leaf) =>
      change(leaf, (transaction) =>
        transaction.run(administration.updateBudget, budgetToRow(budget, 0)),
      ),
    remove: (id, leaf) =>
      change(leaf, async (transaction) => {
        if ((await transaction.run(administration.removeBudget, { id })) === 0) return 0;
        await forgetRaises(transaction, id);
        return 1;
      }),
    raises: () =>
      database.read(async (connection) =>
        (await connection.all(administration.raises, {})).map(raiseFromRow),
      ),
    insertRaise: (raise, leaf, most) =>
      change(leaf, async (transaction) => {
        const row = raiseToRow(raise, await transaction.next());
        const left = readRow(await transaction.get(administration.raisesLeft, row));
        if (left.integer("raises") >= most) return 0;
        if ((await transaction.run(administration.insertRaise, row)) === 0) return 0;
        await transaction.run(administration.forgetRaises, row);
        return 1;
      }),
    removeRaise: ({ budgetId, id }, leaf) =>
      change(leaf, (transaction) =>
        transaction.run(administration.removeRaise, { budget_id: budgetId, id }),
      ),
    reconcile: ({ limit }) =>
      database.read(async (connection) => ({
        counters: readRow(await connection.get(reconciling.counters, {})).integer("counters"),
        drift: (await connection.query(reconciling.drift, { limit }, longestAnswer.ledger)).map(
          driftFromRow,
        ),
      })),
    counters: (query, paging) =>
      readPage(database, lists.counters, conditions.ofCounters(query), paging, counterFromRow),
  };
}

async function forgetRaises(transaction: Transaction, budgetId: string): Promise<void> {
  await transaction.run(administration.forgetRaises, { budget_id: budgetId, at: endOfTime });
}
