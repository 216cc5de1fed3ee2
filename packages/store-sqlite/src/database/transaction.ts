import type { Decision, View } from "@tollgate/store-engine";
import { readRow } from "@tollgate/store-sql";
import { createDriver, type Driver, type StoreNumbers } from "../driver/driver.ts";
import type { SqliteConnection } from "./connection.ts";

/** What an operation sees of the transaction it runs in. */
export interface Transaction extends StoreNumbers, Pick<SqliteConnection, "run" | "get" | "all"> {
  budgetsChanged(): void;
  /** Decides on what this transaction sees, and writes what was decided. */
  carryOut<Result>(decide: (view: View) => Decision<Result>): Result;
}

/** Whatever has a number has a leaf with that number, or with a later one. */
const readNumbers = `SELECT budgets_version, (SELECT max(sequence) FROM leaves) AS sequence
  FROM store_state WHERE id = 1`;
const writeVersion = "UPDATE store_state SET budgets_version = :budgets_version WHERE id = 1";

/** Runs `work` in one transaction: committed when it returns, rolled back when it throws. */
export type RunInTransaction = <Result>(work: (transaction: Transaction) => Result) => Result;

/** The store's own numbers: the last of its sequence, and how often its budgets changed. */
interface StoreState {
  readonly sequence: number;
  readonly budgetsVersion: number;
}

/**
 * Transactions of one connection. The store's numbers are read and written once in each, however many operations it is
 * made of. They, and the rows that decisions saw, are kept for the next one unless another connection wrote.
 */
export function createTransactions(connection: SqliteConnection): RunInTransaction {
  const driver = createDriver(connection);
  let version: number | null = null;
  let state: StoreState | null = null;

  const forget = (): void => {
    driver.forget();
    [version, state] = [null, null];
  };
  const begin = (): StoreState => {
    // Differs exactly when another connection has committed.
    const current = readRow(connection.get("PRAGMA data_version", {})).integer("data_version");
    if (current !== version) forget();
    version = current;
    return state ?? readState(connection);
  };
  return (work) => {
    connection.file.check();
    connection.exec("BEGIN IMMEDIATE");
    try {
      const before = begin();
      const { transaction, after } = createTransaction(driver, before);
      const result = work(transaction);
      driver.finish();
      state = saveState(connection, before, after());
      connection.exec("COMMIT");
      return result;
    } catch (error) {
      forget();
      rollBack(connection);
      throw error;
    }
  };
}

function createTransaction(
  driver: Driver,
  before: StoreState,
): { readonly transaction: Transaction; after(): StoreState } {
  let { sequence, budgetsVersion } = before;
  const transaction: Transaction = {
    run: driver.run,
    get: driver.get,
    all: driver.all,
    next: () => ++sequence,
    get budgetsVersion() {
      return budgetsVersion;
    },
    budgetsChanged() {
      budgetsVersion++;
    },
    carryOut: (decide) => driver.carryOut(transaction, decide),
  };
  return { transaction, after: () => ({ sequence, budgetsVersion }) };
}

function readState(connection: SqliteConnection): StoreState {
  const state = readRow(connection.get(readNumbers, {}));
  return {
    sequence: state.integerOrNull("sequence") ?? 0,
    budgetsVersion: state.integer("budgets_version"),
  };
}

function saveState(
  connection: SqliteConnection,
  before: StoreState,
  after: StoreState,
): StoreState {
  const { budgetsVersion } = after;
  if (budgetsVersion !== before.budgetsVersion)
    connection.run(writeVersion, { budgets_version: budgetsVersion });
  return after;
}

function rollBack(connection: SqliteConnection): void {
  try {
    connection.exec("ROLLBACK");
  } catch {
    // A full disk or an I/O error has rolled the transaction back already; the first error is the one to tell.
  }
}
