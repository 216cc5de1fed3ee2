import { type Change, type Decision, idTakenError, type View } from "@tollgate/store-engine";
import {
  createKnownRecent,
  createKnownRows,
  type KnownRows,
  type Reads,
  readRow,
  recentSessions,
  viewKnown,
  viewRows,
} from "@tollgate/store-sql";
import { applyChange } from "./apply-change.ts";
import type { SqliteConnection } from "./connection.ts";
import { createDeferredRows, RowExists } from "./deferred-rows.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";
import { embeddingStatements, holdsFromText } from "./step-row.ts";

/** The numbers of a store, as of one transaction. */
export interface StoreNumbers {
  readonly budgetsVersion: number;
  /** Takes the next number of the store's sequence. */
  next(): number;
}

/** Carries out decisions within the open transaction of a connection. */
export interface Driver extends Pick<SqliteConnection, "run" | "get" | "all"> {
  /** Runs a rule on what the transaction sees, and writes its change. */
  carryOut<Result>(numbers: StoreNumbers, decide: (view: View) => Decision<Result>): Result;
  /** Writes deferred rows. Call it before COMMIT. May throw RowExists. */
  finish(): void;
  /**
   * Whether decisions look for the rows that they are about to create. Almost none exists, so looking first would be a wasted
   * read, and each decision would be written alone. Set it for a transaction after another one threw RowExists.
   */
  isCareful: boolean;
  /** Forgets all known rows, because another connection wrote or the transaction was rolled back. */
  forget(): void;
}

/** Reading all candidate Sessions of a key costs as much as this many look-ups of matching ones. */
const cacheThreshold = 16;

export function createDriver(connection: SqliteConnection): Driver {
  const deferred = createDeferredRows(connection);
  // Reads must see the deferred rows of their tables.
  const flushedReads: Pick<SqliteConnection, "get" | "all"> = {
    get(text, parameters) {
      deferred.flushFor(text);
      return connection.get(text, parameters);
    },
    all(text, parameters) {
      deferred.flushFor(text);
      return connection.all(text, parameters);
    },
  };
  const recent = createKnownRecent(cacheThreshold, ({ owner, source }) =>
    recentSessions(flushedReads, owner, source),
  );
  const known = createKnownRows(recent);
  const rows = createView(flushedReads, known);
  let numbers: StoreNumbers | null = null;
  let assumedNew = false;
  const viewWith = (openedBefore: View["openedBefore"]): View => ({
    ...rows,
    budgetsVersion: () => numbers?.budgetsVersion ?? 0,
    openedBefore,
  });
  const assumingView = viewWith((organizationId, id) => {
    const open = known.steps.get(organizationId, id);
    assumedNew = open === null;
    return open?.record ?? null;
  });
  const checkingView = viewWith(rows.step);
  const write = (change: Change, { next }: StoreNumbers): void => {
    if (change.length === 0) return;
    const sequence = next();
    applyChange({ run: connection.run, deferred, known, view: rows, sequence, next }, change);
  };
  const check = <Result>(current: StoreNumbers, decide: (view: View) => Decision<Result>) => {
    const { result, change } = decide(checkingView);
    try {
      write(change, current);
      deferred.flush();
    } catch (error) {
      throw error instanceof RowExists ? idTakenError("new Session") : error;
    }
    return result;
  };
  const driver: Driver = {
    isCareful: false,
    carryOut(current, decide) {
      [numbers, assumedNew] = [current, false];
      if (driver.isCareful) return check(current, decide);
      const { result, change } = decide(assumingView);
      // The Step may be refused because of its own earlier opening, such as its holds.
      if (assumedNew && change.length === 0) return check(current, decide);
      write(change, current);
      return result;
    },
    ...flushedReads,
    run(text, parameters) {
      deferred.flush();
      known.clear();
      return connection.run(text, parameters);
    },
    finish: deferred.flush,
    forget() {
      deferred.drop();
      known.clear();
    },
  };
  return driver;
}

/** The reads of rules within a transaction: known rows, or else the database. */
function createView(reads: Reads, known: KnownRows): View {
  const rows = viewRows(reads, { dialect: sqliteDialect, oldSteps: "steps" });
  const find = (statement: string, organizationId: string, id: string): unknown =>
    reads.get(statement, { organization_id: organizationId, id });
  const ownRows: View = {
    ...rows,
    holds({ step: { organizationId, id: stepId } }) {
      const row = find(embeddingStatements.held, organizationId, stepId);
      if (row === undefined) return [];
      return holdsFromText({ organizationId, stepId }, readRow(row).textOrNull("held"));
    },
    hasDecision: (organizationId, id) =>
      rows.hasDecision(organizationId, id) ||
      find(embeddingStatements.hasPermit, organizationId, id) !== undefined,
  };
  return viewKnown(ownRows, known);
}
