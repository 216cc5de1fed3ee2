import { type Answer, type Ask, play, type Script, type ScriptDatabase } from "@tollgate/store-sql";
import type { SqliteConnection } from "./connection.ts";
import type { Database } from "./database.ts";
import type { Transaction } from "./transaction.ts";

/** Plays the scripts that both SQL stores share. Work whose outcome is unknown is never run again here. */
export function scriptDatabaseOn(database: Database): ScriptDatabase {
  return {
    read: (script) => database.read((connection) => playReads(connection, script())),
    write: (script) =>
      database.write((transaction) => play(script(), (ask) => execute(transaction, ask))),
  };
}

/** Plays a script that reads. */
export function playReads<Result>(
  connection: Pick<SqliteConnection, "all" | "query">,
  script: Script<Result>,
): Result {
  return play(script, (ask) => rowsFor(connection, ask));
}

const noRows: readonly unknown[] = [];

function rowsFor(connection: Pick<SqliteConnection, "all" | "query">, ask: Ask): Answer {
  if (ask.wants !== "rows") throw new TypeError("a read can't write");
  const rows = ask.isConstant
    ? connection.all(ask.text, ask.parameters)
    : connection.query(ask.text, ask.parameters);
  return { rows, count: 0 };
}

function execute(transaction: Transaction, ask: Ask): Answer {
  switch (ask.wants) {
    case "changes":
      return { rows: noRows, count: transaction.run(ask.text, ask.parameters) };
    case "rows":
      return { rows: transaction.all(ask.text, ask.parameters), count: 0 };
    case "number":
      return { rows: noRows, count: transaction.next() };
    case "new budgets version":
      transaction.budgetsChanged();
      return { rows: noRows, count: 0 };
  }
}
