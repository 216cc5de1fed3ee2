import type { BudgetCounter } from "@tollgate/core/store";
import { counterToRow, holdStatements, type SqlParameters } from "@tollgate/store-sql";
import type { SqliteConnection } from "../database/connection.ts";

/**
 * Rows of one transaction that wait until it reads or ends, so that one statement writes several: those that cannot
 * meet another one, and counters, each as it is at last.
 */
export interface DeferredRows {
  /** `statement` is an INSERT of one row. */
  insert(statement: string, row: SqlParameters): void;
  setCounter(counter: BudgetCounter): void;
  /** Writes what waits. */
  flush(): void;
  /** Forgets what waits: the transaction is rolled back. */
  drop(): void;
}

export function createDeferredRows({
  insertRows,
}: Pick<SqliteConnection, "insertRows">): DeferredRows {
  const inserts: { readonly statement: string; readonly rows: SqlParameters[] }[] = [];
  const counters: BudgetCounter[] = [];
  return {
    insert(statement, row) {
      const waiting = inserts.find((other) => other.statement === statement);
      if (waiting) waiting.rows.push(row);
      else inserts.push({ statement, rows: [row] });
    },
    setCounter(counter) {
      const place = counters.findIndex((other) => isSameCounter(other, counter));
      counters[place < 0 ? counters.length : place] = counter;
    },
    flush() {
      for (const { statement, rows } of inserts) {
        if (rows.length > 0) insertRows(statement, rows);
        rows.length = 0;
      }
      if (counters.length > 0) insertRows(holdStatements.setCounter, counters.map(counterToRow));
      counters.length = 0;
    },
    drop() {
      for (const { rows } of inserts) rows.length = 0;
      counters.length = 0;
    },
  };
}

function isSameCounter(a: BudgetCounter, b: BudgetCounter): boolean {
  return a.budgetId === b.budgetId && a.subject === b.subject && a.periodStart === b.periodStart;
}
