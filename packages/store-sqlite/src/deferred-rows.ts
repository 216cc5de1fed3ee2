import { type BudgetCounter, isSameCounter } from "@tollgate/core/store";
import type { SessionState } from "@tollgate/store-engine";
import {
  counterToRow,
  holdStatements,
  type SqlParameters,
  sessionToRow,
  writes,
} from "@tollgate/store-sql";
import type { SqliteConnection } from "./connection.ts";
import { storeFailure } from "./failure.ts";

/**
 * Rows that wait until the transaction reads their table or ends: new rows, the ends of Steps, and the last states of
 * Sessions and counters. Rows of one table are then written together, several per statement.
 */
export interface DeferredRows {
  /** `statement` inserts one row. */
  insert(statement: string, row: SqlParameters): void;
  /** `statement` updates one row, after any waiting insert. No other waiting update may write that row. */
  update(statement: string, row: SqlParameters): void;
  setSession(session: SessionState, isNew: boolean): void;
  setCounter(counter: BudgetCounter): void;
  /**
   * Writes the waiting rows.
   * @throws RowExists if a new Step or Session already exists
   */
  flush(): void;
  /** Writes the waiting rows of the tables that the statement `text` names or reads through a view. */
  flushFor(text: string): void;
  /** Drops the waiting rows after a rollback. */
  drop(): void;
}

/** Thrown when rows that were expected to be new already exist. */
export class RowExists extends Error {
  constructor(table: string) {
    super(`a new row of ${table} exists already`);
  }
}

/** Waiting rows, grouped by the statement that writes one of them. `write` writes all rows of one statement. */
function createWaitingRows(write: (statement: string, rows: readonly SqlParameters[]) => void) {
  const waiting: {
    readonly statement: string;
    /** The table, and the views that read it. */
    readonly names: readonly string[];
    readonly rows: SqlParameters[];
  }[] = [];
  const writeOf = ({ statement, rows }: (typeof waiting)[number]): void => {
    write(statement, rows);
    rows.length = 0;
  };
  return {
    add(statement: string, row: SqlParameters): void {
      const same = waiting.find((other) => other.statement === statement);
      if (same) same.rows.push(row);
      else waiting.push({ statement, names: namesOf(statement), rows: [row] });
    },
    flush(): void {
      for (const one of waiting) writeOf(one);
    },
    flushFor(text: string): void {
      for (const one of waiting) if (one.names.some((name) => text.includes(name))) writeOf(one);
    },
    drop(): void {
      for (const { rows } of waiting) rows.length = 0;
    },
  };
}

/** A waiting Session, and whether its row is new. */
interface WaitingSession {
  session: SessionState;
  readonly isNew: boolean;
}

/** The table of an INSERT or an UPDATE. */
function tableOf(statement: string): string {
  const table = /^(?:INSERT INTO|UPDATE) (\w+)/.exec(statement)?.[1];
  if (table === undefined) throw new TypeError("Only an INSERT or an UPDATE can wait.");
  return table;
}

/** The views that read a table of deferred rows. */
const viewsOf: ReadonlyMap<string, readonly string[]> = new Map([
  ["steps", ["open_steps", "turns", "holds"]],
]);

function namesOf(statement: string): readonly string[] {
  const table = tableOf(statement);
  return [table, ...(viewsOf.get(table) ?? [])];
}

const counterTable = tableOf(holdStatements.setCounter);
const sessionTable = tableOf(writes.session.statement);
/** Tables whose new rows must not exist yet. In other tables, a new row may already exist, or never can. */
const claimedTables: ReadonlySet<string> = new Set([sessionTable, writes.step.table]);

export function createDeferredRows({
  insertRows,
  run,
}: Pick<SqliteConnection, "insertRows" | "run">): DeferredRows {
  const sessions: WaitingSession[] = [];
  const counters: BudgetCounter[] = [];
  const insertAll = (statement: string, rows: readonly SqlParameters[]): void => {
    if (rows.length === 0) return;
    const table = tableOf(statement);
    const written = insertRows(statement, rows);
    if (written < rows.length && claimedTables.has(table)) throw new RowExists(table);
  };
  const inserts = createWaitingRows(insertAll);
  const updates = createWaitingRows((statement, rows) => {
    for (const row of rows)
      if (run(statement, row) === 0) throw storeFailure("a row to update doesn't exist");
  });
  const rowOf = ({ session }: WaitingSession): SqlParameters =>
    sessionToRow(session, session.updated);
  const writeSessions = (): void => {
    insertAll(writes.session.statement, sessions.filter(({ isNew }) => isNew).map(rowOf));
    for (const one of sessions) if (!one.isNew) run(writes.movedSession.statement, rowOf(one));
    sessions.length = 0;
  };
  const writeCounters = (): void => {
    insertAll(holdStatements.setCounter, counters.map(counterToRow));
    counters.length = 0;
  };
  return {
    insert: inserts.add,
    update: updates.add,
    setSession(session, isNew) {
      const { organizationId, id } = session;
      const before = sessions.find(
        ({ session: other }) => other.id === id && other.organizationId === organizationId,
      );
      if (before && !isNew) before.session = session;
      else sessions.push({ session, isNew });
    },
    setCounter(counter) {
      const place = counters.findIndex((other) => isSameCounter(other, counter));
      counters[place < 0 ? counters.length : place] = counter;
    },
    flush() {
      // A Step may open and end in one transaction.
      inserts.flush();
      updates.flush();
      writeSessions();
      writeCounters();
    },
    flushFor(text) {
      inserts.flushFor(text);
      updates.flushFor(text);
      if (text.includes(sessionTable)) writeSessions();
      if (text.includes(counterTable)) writeCounters();
    },
    drop() {
      inserts.drop();
      updates.drop();
      sessions.length = 0;
      counters.length = 0;
    },
  };
}
