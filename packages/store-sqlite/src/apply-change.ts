import { type BudgetCounter, isSameCounter } from "@tollgate/core/store";
import {
  type Change,
  idTakenError,
  moveCounter,
  type Operation,
  type RowName,
  type StepRecord,
  type View,
} from "@tollgate/store-engine";
import {
  correctionToRow,
  counterToRow,
  decisionToRow,
  endToRow,
  erasureStatements,
  errorToRow,
  holdStatements,
  type KnownRows,
  leafToRow,
  nextAttemptToRow,
  partToRow,
  responseRecordToRow,
  retentionStatements,
  rowOfClaim,
  type SqlParameters,
  sessionToRow,
  stepToRow,
  usageToRow,
  writes,
} from "@tollgate/store-sql";
import type { SqliteConnection } from "./connection.ts";
import {
  embeddedAfter,
  embeddedAtOpening,
  embeddingStatements,
  isEmbeddedPermit,
} from "./step-row.ts";

/** Where a change is written: the database, the known rows, and the number of the change. */
interface WriteTarget {
  readonly run: SqliteConnection["run"];
  readonly deferred: DeferredRows;
  readonly known: KnownRows;
  readonly view: Pick<View, "holds" | "counter">;
  readonly sequence: number;
  /** Takes the next number. */
  next(): number;
}

/** Writes a change. Returns false and writes nothing if the Step to open is already open. */
export function applyChange(target: WriteTarget, change: Change): boolean {
  let leaves = 0;
  for (const operation of change) {
    if (operation.write === "insert leaf") {
      // Every leaf needs a number of its own.
      const number = leaves++ === 0 ? target.sequence : target.next();
      target.deferred.insert(writes.leaf.statement, leafToRow(operation.row, number));
      continue;
    }
    const written = apply(target, operation, change);
    if (written === 0 && operation.write === "insert step") return false;
    if (written === 0 && operation.write === "insert session") throw idTakenError("new Session");
    if (written === 0 && operation.write === "insert response")
      throw idTakenError("stored response");
  }
  return true;
}

/** Returns the number of changed rows. A deferred row counts as one. */
function apply(
  target: WriteTarget,
  operation: Exclude<Operation, { readonly write: "insert leaf" }>,
  change: Change,
): number {
  const { run, known, deferred, sequence } = target;
  const insert = (statement: string, row: SqlParameters): number => {
    deferred.insert(statement, row);
    return 1;
  };
  switch (operation.write) {
    case "insert step":
      return insertStep(target, operation, change);
    case "update step":
      return updateStep(target, operation.row, change);
    case "settle step":
      return settleStep(target, operation.row, change);
    case "insert session":
    case "update session":
      return writeSession(target, operation);
    case "insert turn":
      return insert(writes.turn.statement, turnToRow(operation.row));
    case "insert part":
      return insert(writes.part.statement, partToRow(operation.row));
    case "insert error":
      return insert(writes.error.statement, errorToRow(operation.row));
    case "insert decision":
    case "claim decision": {
      const { owner, decision } = operation.row;
      const [first] = change;
      if (first?.write === "insert step" && isEmbeddedPermit(first.row, operation.row)) return 1;
      return insert(writes.decision.statement, decisionToRow(owner, decision, sequence));
    }
    case "insert hold":
    case "settle hold":
      // Written with the row of the Step, which is part of the same change.
      return 1;
    case "move counter": {
      const counter = moveCounter(target.view.counter(operation.row), operation.row);
      known.counters.set(counter);
      deferred.setCounter(counter);
      return 1;
    }
    case "insert correction":
      return insert(writes.correction.statement, correctionToRow(operation.row, sequence));
    case "insert usage":
      return insert(writes.usageHour.statement, usageToRow(operation.row));
    case "insert response":
      return run(writes.response.statement, responseRecordToRow(operation.row));
    case "remove response":
      return run(writes.removedResponse.statement, nameToRow(operation.row));
    case "relink response": {
      const { builtOn, inherited } = operation.row;
      const row = { ...nameToRow(operation.row), built_on: builtOn, inherited };
      return run(writes.relinkedResponse.statement, row);
    }
    case "remove step":
      return removeStep(target, nameToRow(operation.row));
    case "erase session": {
      const erased = { ...nameToRow(operation.row), nothing };
      deferred.flush();
      return run(erasureStatements.erase, erased) + run(erasureStatements.eraseErrors, erased);
    }
    case "mark erased": {
      const { organizationId, updated } = operation.row;
      return run(writes.erasure.statement, { organization_id: organizationId, updated });
    }
    default: {
      const [write, row] = rowOfClaim(operation);
      return run(writes[write].statement, row);
    }
  }
}

function writeSession(
  { run, known, sequence }: WriteTarget,
  { row, write }: Extract<Operation, { readonly write: "insert session" | "update session" }>,
): number {
  const session = { ...row, updated: sequence };
  known.sessions.set(row.organizationId, row.id, session);
  known.recent.touch(session, row.updated);
  const statement =
    write === "insert session" ? writes.session.statement : writes.movedSession.statement;
  return run(statement, sessionToRow(row, sequence));
}

const oldSteps = retentionStatements("steps");
const nothing = new Uint8Array();

function nameToRow({ organizationId, id }: RowName): SqlParameters {
  return { organization_id: organizationId, id };
}

function turnToRow({
  sessionId,
  ...name
}: Extract<Operation, { readonly write: "insert turn" }>["row"]): SqlParameters {
  return { ...nameToRow(name), session_id: sessionId };
}

function insertStep(
  { run, known, sequence }: WriteTarget,
  { row, renewal }: Extract<Operation, { readonly write: "insert step" }>,
  change: Change,
): number {
  const { organizationId, id } = row.step;
  const { holds, columns } = embeddedAtOpening(row, change);
  if (run(embeddingStatements.insert, { ...stepToRow(row, sequence), renewal, ...columns }) === 0)
    return 0;
  known.steps.set(organizationId, id, { record: row, holds });
  return 1;
}

function updateStep(target: WriteTarget, row: StepRecord, change: Change): number {
  const { run, known } = target;
  const { holds, columns } = embeddedAfter(change, () => target.view.holds(row));
  const open = known.steps.get(row.step.organizationId, row.step.id);
  if (open) Object.assign(open, { record: row, ...(holds && { holds }) });
  return run(embeddingStatements.nextAttempt, { ...nextAttemptToRow(row), ...columns });
}

function settleStep(target: WriteTarget, row: StepRecord, change: Change): number {
  const { run, known } = target;
  const { organizationId, id } = row.step;
  const { columns } = embeddedAfter(change, () => target.view.holds(row));
  known.steps.remove(organizationId, id);
  // Kept only while a Step of the Session is open. The next Step reads it again.
  if (row.step.sessionId !== null) known.sessions.remove(organizationId, row.step.sessionId);
  return run(embeddingStatements.end, { ...endToRow(row), ...columns });
}

/** Removes a Step, but keeps its holds and its permit. */
function removeStep({ run }: WriteTarget, name: SqlParameters): number {
  run(embeddingStatements.keepHolds, name);
  run(embeddingStatements.keepPermit, name);
  return run(oldSteps.removeOne, name);
}

/**
 * Rows that wait until the transaction reads or ends, so that one statement writes several of them: rows that can't
 * conflict with others, and the final values of counters.
 */
interface DeferredRows {
  /** `statement` inserts one row. */
  insert(statement: string, row: SqlParameters): void;
  setCounter(counter: BudgetCounter): void;
  /** Writes the waiting rows. */
  flush(): void;
  /** Writes the waiting rows of the tables that a statement names. */
  flushFor(text: string): void;
  /** Drops the waiting rows after a rollback. */
  drop(): void;
}

interface WaitingRows {
  readonly statement: string;
  readonly table: string;
  readonly rows: SqlParameters[];
}

/** The table of an INSERT. */
function tableOf(statement: string): string {
  const table = /^INSERT INTO (\w+)/.exec(statement)?.[1];
  if (table === undefined) throw new TypeError("Only an INSERT can wait.");
  return table;
}

const counterTable = tableOf(holdStatements.setCounter);

export function createDeferredRows({
  insertRows,
}: Pick<SqliteConnection, "insertRows">): DeferredRows {
  const inserts: WaitingRows[] = [];
  const counters: BudgetCounter[] = [];
  const write = ({ statement, rows }: WaitingRows): void => {
    if (rows.length > 0) insertRows(statement, rows);
    rows.length = 0;
  };
  const writeCounters = (): void => {
    if (counters.length > 0) insertRows(holdStatements.setCounter, counters.map(counterToRow));
    counters.length = 0;
  };
  return {
    insert(statement, row) {
      const waiting = inserts.find((other) => other.statement === statement);
      if (waiting) waiting.rows.push(row);
      else inserts.push({ statement, table: tableOf(statement), rows: [row] });
    },
    setCounter(counter) {
      const place = counters.findIndex((other) => isSameCounter(other, counter));
      counters[place < 0 ? counters.length : place] = counter;
    },
    flush() {
      for (const waiting of inserts) write(waiting);
      writeCounters();
    },
    flushFor(text) {
      for (const waiting of inserts) if (text.includes(waiting.table)) write(waiting);
      if (text.includes(counterTable)) writeCounters();
    },
    drop() {
      for (const { rows } of inserts) rows.length = 0;
      counters.length = 0;
    },
  };
}
