import { readRow } from "@tollgate/store-sql";
import type { Functions } from "../functions/functions.ts";
import type { Connection } from "./connection.ts";
import { PostgresFailure } from "./failure.ts";

/** What a change sees of the transaction it runs in. */
export interface Transaction extends Pick<Connection, "run" | "get" | "all"> {
  readonly functions: Functions;
  /** The next number of the store's one sequence. */
  next(): Promise<number>;
  /** Runs all of `work` or, when it returns something, none of it, and returns that. */
  unless<Refusal>(work: () => Promise<Refusal | null>): Promise<Refusal | null>;
}

/** Milliseconds that the server waits for a lock, for a statement to end, and for us to go on. */
const settings = `SET LOCAL lock_timeout = 1500; SET LOCAL statement_timeout = 1900;
  SET LOCAL idle_in_transaction_session_timeout = 5000`;

/** Runs `work` in one transaction: committed when it resolves, rolled back when it rejects. */
export async function inTransaction<Result>(
  connection: Connection,
  work: () => Promise<Result>,
): Promise<Result> {
  await connection.exec(`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ${settings}`);
  try {
    const result = await work();
    await connection.exec("COMMIT");
    return result;
  } catch (error) {
    // With a lost connection the server ends the transaction by itself.
    if (!(error instanceof PostgresFailure && error.kind.isLost)) await rollBack(connection);
    throw error;
  }
}

export function createTransaction(
  connection: Connection,
  { schema, functions }: { readonly schema: string; readonly functions: Functions },
): Transaction {
  const nextNumber = `SELECT nextval('${schema}.sequence') AS number`;
  return {
    functions,
    run: connection.run,
    get: connection.get,
    all: connection.all,
    next: async () => readRow(await connection.get(nextNumber, {})).integer("number"),
    async unless(work) {
      await connection.exec("SAVEPOINT part");
      const refusal = await work();
      await connection.exec(refusal === null ? "RELEASE part" : "ROLLBACK TO part; RELEASE part");
      return refusal;
    },
  };
}

async function rollBack(connection: Connection): Promise<void> {
  try {
    await connection.exec("ROLLBACK");
  } catch {
    // The connection is lost now and the transaction with it; the first error is the one to tell.
  }
}
