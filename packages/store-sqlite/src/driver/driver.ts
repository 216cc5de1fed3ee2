import type { Change, Decision, View } from "@tollgate/store-engine";
import { createKnownRecent, createKnownRows, SessionReads } from "@tollgate/store-sql";
import type { SqliteConnection } from "../database/connection.ts";
import { applyChange } from "./apply-change.ts";
import { createDeferredRows } from "./deferred-rows.ts";
import { createView } from "./view.ts";

/** The numbers of a store, as one transaction has them. */
export interface StoreNumbers {
  readonly budgetsVersion: number;
  /** The next number of the store's one sequence. */
  next(): number;
}

/** Carries out decisions on a connection, within the transaction that is open on it. */
export interface Driver extends Pick<SqliteConnection, "run" | "get" | "all"> {
  /** Decides on what the transaction sees, and writes what was decided. */
  carryOut<Result>(numbers: StoreNumbers, decide: (view: View) => Decision<Result>): Result;
  /** Writes what waits: before COMMIT. */
  finish(): void;
  /** Forgets what is known of the database: someone else wrote, or what was written was rolled back. */
  forget(): void;
}

/** Reading all Sessions that a key's requests may continue costs as much as finding those that match so often. */
const cacheThreshold = 16;

export function createDriver(connection: SqliteConnection): Driver {
  const deferred = createDeferredRows(connection);
  // What waits to be written is, before anything else looks.
  const flushedReads: Pick<SqliteConnection, "get" | "all"> = {
    get(text, parameters) {
      deferred.flush();
      return connection.get(text, parameters);
    },
    all(text, parameters) {
      deferred.flush();
      return connection.all(text, parameters);
    },
  };
  const sessions = new SessionReads(flushedReads);
  const recent = createKnownRecent(cacheThreshold, ({ owner, source }) =>
    sessions.recent(owner, source),
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
  // Almost no Step was opened before: inserting it finds out, which saves looking each time.
  const assumingView = viewWith((organizationId, id) => {
    const open = known.steps.get(organizationId, id);
    assumedNew = open === null;
    return open?.record ?? null;
  });
  const checkingView = viewWith(rows.step);
  const write = (change: Change, { next }: StoreNumbers): boolean => {
    if (change.length > 0) {
      const sequence = next();
      const target = { run: connection.run, deferred, known, view: rows, sequence, next };
      return applyChange(target, change);
    }
    // What refuses a Step is in the database before anything changes it.
    deferred.flush();
    return true;
  };
  return {
    carryOut(current, decide) {
      [numbers, assumedNew] = [current, false];
      const { result, change } = decide(assumingView);
      // What refuses a Step now may be what it did itself when it was opened.
      const isFinal = !assumedNew || change.length > 0;
      if (isFinal && write(change, current)) return result;
      const checked = decide(checkingView);
      write(checked.change, current);
      return checked.result;
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
}
