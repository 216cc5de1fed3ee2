import type { Decision, View } from "@tollgate/store-engine";
import { readRow } from "@tollgate/store-sql";
import { rollBack, type SqliteConnection } from "./connection.ts";
import { contentBytesOf } from "./content-bytes.ts";
import { RowExists } from "./deferred-rows.ts";
import { createDriver, type Driver, type StoreNumbers } from "./driver.ts";

/** The operations of a write in its transaction. */
export interface Transaction extends StoreNumbers, Pick<SqliteConnection, "run" | "get" | "all"> {
  /** The bytes of content that it has written or overwritten. */
  readonly contentBytes: number;
  budgetsChanged(): void;
  /** Runs a rule on what this transaction sees, and writes its change. */
  carryOut<Result>(decide: (view: View) => Decision<Result>): Result;
}

/** Every numbered row has a leaf with the same or a later number. */
const readNumbers = `SELECT budgets_version, (SELECT max(sequence) FROM leaves) AS sequence
  FROM store_state WHERE id = 1`;
const writeVersion = "UPDATE store_state SET budgets_version = :budgets_version WHERE id = 1";

/** The transactions of one connection. */
export interface Transactions {
  /**
   * Runs `work` in one transaction. Commits when it returns, rolls back when it throws. Runs it a second time if a row that
   * was taken to be new exists.
   */
  run<Result>(work: (transaction: Transaction) => Result): Result;
  /** Whether at least two transactions of the last 100 ms found that another connection had written. */
  isShared(): boolean;
}

/** Longer than the pause between two commits of a process that writes all the time. Milliseconds. */
const sharedMs = 100;
const never = Number.NEGATIVE_INFINITY;

/** The last number of the store's sequence, and the version of its budgets. */
interface StoreState {
  readonly sequence: number;
  readonly budgetsVersion: number;
}

/**
 * Creates the transactions of a connection. Each reads and writes the store's numbers at most once, for all its writes. The
 * numbers and the known rows are kept for the next transaction unless another connection wrote.
 */
export function createTransactions(connection: SqliteConnection): Transactions {
  const driver = createDriver(connection);
  let version: number | null = null;
  /** When the last two transactions began that found another connection's writes. Monotonic. */
  let foundOthersAt: readonly [earlier: number, last: number] = [never, never];
  let state: StoreState | null = null;

  const forget = (): void => {
    driver.forget();
    [version, state] = [null, null];
  };
  const begin = (): StoreState => {
    // Changes exactly when another connection commits.
    const current = readRow(connection.get("PRAGMA data_version", {})).integer("data_version");
    if (version !== null && current !== version)
      foundOthersAt = [foundOthersAt[1], performance.now()];
    if (current !== version) forget();
    version = current;
    return state ?? readState(connection);
  };
  const attempt = <Result>(work: (transaction: Transaction) => Result): Result => {
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
  const run = <Result>(work: (transaction: Transaction) => Result): Result => {
    try {
      return attempt(work);
    } catch (error) {
      if (!(error instanceof RowExists)) throw error;
    }
    driver.isCareful = true;
    try {
      return attempt(work);
    } finally {
      driver.isCareful = false;
    }
  };
  return { run, isShared: () => performance.now() - foundOthersAt[0] < sharedMs };
}

function createTransaction(
  driver: Driver,
  before: StoreState,
): { readonly transaction: Transaction; after(): StoreState } {
  let { sequence, budgetsVersion } = before;
  let contentBytes = 0;
  const transaction: Transaction = {
    run: driver.run,
    get: driver.get,
    all: driver.all,
    next: () => ++sequence,
    get budgetsVersion() {
      return budgetsVersion;
    },
    get contentBytes() {
      return contentBytes;
    },
    budgetsChanged() {
      budgetsVersion++;
    },
    carryOut: (decide) =>
      driver.carryOut(transaction, (view) => {
        const decision = decide(view);
        contentBytes += contentBytesOf(decision.change, driver);
        return decision;
      }),
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
