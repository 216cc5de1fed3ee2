import {
  type Answer,
  type Ask,
  playLater,
  type Script,
  type ScriptDatabase,
} from "@tollgate/store-sql";
import { type Connection, queryTimeouts } from "./connection.ts";
import type { Database } from "./database.ts";
import type { Transaction } from "./transaction.ts";

/** Runs the scripts that both SQL stores share. */
export function scriptsOn(database: Database): ScriptDatabase {
  return {
    read: (script) => database.read((connection) => readLater(connection, script())),
    write: (script, repeatable) =>
      database.write((transaction) => playTransaction(transaction, script()), repeatable),
  };
}

/** Runs a script in a transaction. */
export function playTransaction<Result>(
  transaction: Transaction,
  script: Script<Result>,
): Promise<Result> {
  return playLater(script, (ask) => answer(transaction, ask));
}

/** Runs a script that only reads. */
export function readLater<Result>(
  connection: Pick<Connection, "all" | "query">,
  script: Script<Result>,
): Promise<Result> {
  return playLater(script, (ask) => rowsFor(connection, ask));
}

const countChange = "UPDATE store_state SET budgets_version = budgets_version + 1 WHERE id = 1";
const noRows: readonly unknown[] = [];

async function rowsFor(connection: Pick<Connection, "all" | "query">, ask: Ask): Promise<Answer> {
  if (ask.wants !== "rows") throw new TypeError("a read can't write");
  const { text, parameters, isConstant, isLong } = ask;
  const longest = isLong ? queryTimeouts.ledger : queryTimeouts.list;
  const rows = isConstant
    ? await connection.all(text, parameters)
    : await connection.query(text, parameters, longest);
  return { rows, count: 0 };
}

async function answer(transaction: Transaction, ask: Ask): Promise<Answer> {
  switch (ask.wants) {
    case "changes":
      return { rows: noRows, count: await transaction.run(ask.text, ask.parameters) };
    case "rows":
      return { rows: await transaction.all(ask.text, ask.parameters), count: 0 };
    case "number":
      return { rows: noRows, count: await transaction.next() };
    case "new budgets version":
      return { rows: noRows, count: await transaction.run(countChange, {}) };
  }
}
