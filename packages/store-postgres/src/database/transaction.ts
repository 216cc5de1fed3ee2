import { readRow } from "@tollgate/store-sql";
import type { Connection } from "./connection.ts";
import { PostgresFailure } from "./failure.ts";

/** The transaction as a change sees it. */
export interface Transaction extends Pick<Connection, "run" | "get" | "all"> {
  /** The next number of the store's one sequence. */
  next(): Promise<number>;
}

/** The server's timeouts for a lock, for a statement, and for an idle transaction, in milliseconds. */
const settings = `SET LOCAL lock_timeout = 1500; SET LOCAL statement_timeout = 1900;
  SET LOCAL idle_in_transaction_session_timeout = 5000`;

/** Begins a transaction that writes, whatever the server's default is. */
export const toWrite = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ${settings}`;

/** Begins a transaction with further settings. It also begins in a read-only database, where it can only read. */
export function withSettings(further: readonly string[]): string {
  const all = [settings, ...further.map((setting) => `SET LOCAL ${setting}`)];
  return `BEGIN ISOLATION LEVEL READ COMMITTED; ${all.join("; ")}`;
}

/** Runs `work` in one transaction: committed when it resolves, rolled back when it rejects. */
export async function inTransaction<Result>(
  connection: Connection,
  work: () => Promise<Result>,
  begin = toWrite,
): Promise<Result> {
  await connection.exec(begin);
  try {
    const result = await work();
    await connection.exec("COMMIT");
    return result;
  } catch (error) {
    // If the connection is lost, the server rolls back by itself.
    if (!(error instanceof PostgresFailure && error.kind.isLost)) await rollBack(connection);
    throw error;
  }
}

export function createTransaction(connection: Connection, schema: string): Transaction {
  const nextNumber = `SELECT nextval('${schema}.sequence') AS number`;
  return {
    run: connection.run,
    get: connection.get,
    all: connection.all,
    next: async () => readRow(await connection.get(nextNumber, {})).integer("number"),
  };
}

async function rollBack(connection: Connection): Promise<void> {
  try {
    await connection.exec("ROLLBACK");
  } catch {
    // The connection is lost now, and the transaction with it. The first error is the one to report.
  }
}
