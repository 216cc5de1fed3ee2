import { administration, readRow } from "@tollgate/store-sql";
import type { Connection } from "./connection.ts";

/** What an operation sees of the transaction it runs in. */
export interface Transaction extends Pick<Connection, "run" | "get" | "all"> {
  /** The next number of the store's one sequence. */
  next(): number;
  readonly budgetsVersion: number;
  budgetsChanged(): void;
  /** Runs all of `work` or, when it returns something, none of it, and returns that. */
  unless<Refusal>(work: () => Refusal | null): Refusal | null;
}

/**
 * Runs `work` in one transaction: committed when it returns, rolled back when it throws. The store's counters are read
 * once and written once, however many operations `work` is made of.
 */
export function inTransaction<Result>(
  connection: Connection,
  work: (transaction: Transaction) => Result,
): Result {
  connection.file.check();
  connection.exec("BEGIN IMMEDIATE");
  try {
    const { transaction, save } = begin(connection);
    const result = work(transaction);
    save();
    connection.exec("COMMIT");
    return result;
  } catch (error) {
    rollBack(connection);
    throw error;
  }
}

function begin(connection: Connection) {
  const state = readRow(connection.get(administration.readState, {}));
  const before = {
    sequence: state.integer("sequence"),
    budgetsVersion: state.integer("budgets_version"),
  };
  let { sequence, budgetsVersion } = before;

  const transaction: Transaction = {
    run: connection.run,
    get: connection.get,
    all: connection.all,
    next: () => ++sequence,
    get budgetsVersion() {
      return budgetsVersion;
    },
    budgetsChanged() {
      budgetsVersion++;
    },
    unless: (work) => allOrNothing(connection, work),
  };
  const save = (): void => {
    if (sequence === before.sequence && budgetsVersion === before.budgetsVersion) return;
    connection.run(administration.writeState, { sequence, budgets_version: budgetsVersion });
  };
  return { transaction, save };
}

function allOrNothing<Refusal>(connection: Connection, work: () => Refusal | null): Refusal | null {
  connection.run("SAVEPOINT part", {});
  const refusal = work();
  if (refusal !== null) connection.run("ROLLBACK TO part", {});
  connection.run("RELEASE part", {});
  return refusal;
}

function rollBack(connection: Connection): void {
  try {
    connection.exec("ROLLBACK");
  } catch {
    // A full disk or an I/O error has rolled the transaction back already; the first error is the one to tell.
  }
}
