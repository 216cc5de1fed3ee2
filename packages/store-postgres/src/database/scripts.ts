import {
  type Answer,
  type Ask,
  playLater,
  readRow,
  type Script,
  type ScriptDatabase,
} from "@tollgate/store-sql";
import { type Connection, queryTimeouts } from "./connection.ts";
import type { Database } from "./database.ts";
import type { Transaction } from "./transaction.ts";

/** Runs the scripts that both SQL stores share. */
export function scriptsOn(database: Database): ScriptDatabase {
  return {
    settled: createSettled(database),
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
  const { text, parameters, isConstant } = ask;
  const rows = isConstant
    ? await connection.all(text, parameters)
    : await connection.query(text, parameters, queryTimeouts.list);
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

/** Numbers that were taken by a time, and the transactions that may not have committed theirs yet. */
interface Taken {
  readonly number: number;
  readonly by: ReadonlySet<string>;
}

/** Taking a number locks the sequence until the transaction ends, and a transaction is visible before its locks go. */
const takers = `SELECT virtualtransaction AS taker FROM pg_locks
  WHERE locktype = 'relation' AND relation = CAST(:sequence AS regclass) AND mode = 'RowExclusiveLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/**
 * The last number, and which sequence of which running server it is from. The right to take numbers is enough to read this
 * view, but not the sequence itself.
 */
const latest = `SELECT coalesce(max(last_value), 0) AS number, concat_ws(' ',
    CAST(CAST(:sequence AS regclass) AS oid), extract(epoch FROM pg_postmaster_start_time())) AS source
  FROM pg_sequences WHERE schemaname = :schema AND sequencename = 'sequence'`;

/**
 * Says up to which number of the sequence every transaction has ended. Numbers are committed out of order: a visible number
 * doesn't mean that lower ones are visible too.
 */
function createSettled(database: Pick<Database, "schema" | "read">): () => Promise<number> {
  const { schema } = database;
  const sequence = `${schema}.sequence`;
  let [source, latestNumber, settled] = ["", 0, 0];
  let awaited: Taken | null = null;

  return () =>
    database.read(async (connection) => {
      const last = readRow(await connection.get(latest, { schema, sequence }));
      const number = last.integer("number");
      const rows = await connection.all(takers, { sequence });
      const running = new Set(rows.map((row) => readRow(row).text("taker")));
      // A restore or a failover may have set the sequence back: new transactions then take the numbers of earlier ones.
      if (last.text("source") !== source || number < latestNumber) [settled, awaited] = [0, null];
      [source, latestNumber] = [last.text("source"), number];
      if (awaited !== null && ![...awaited.by].some((taker) => running.has(taker))) {
        settled = Math.max(settled, awaited.number);
        awaited = null;
      }
      if (running.size === 0) settled = Math.max(settled, number);
      else awaited ??= { number, by: running };
      return settled;
    });
}
