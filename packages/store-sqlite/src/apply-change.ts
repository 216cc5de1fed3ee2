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
  decisionToRow,
  endToRow,
  errorRows,
  type KnownRows,
  leafToRow,
  nextAttemptToRow,
  partToRow,
  retentionStatements,
  rowsOf,
  type SqlParameters,
  stepToRow,
  writes,
} from "@tollgate/store-sql";
import type { SqliteConnection } from "./connection.ts";
import type { DeferredRows } from "./deferred-rows.ts";
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
  readonly view: Pick<View, "holds" | "counter" | "hasDecision">;
  readonly sequence: number;
  /** Takes the next number. */
  next(): number;
}

/** Writes a change. */
export function applyChange(target: WriteTarget, change: Change): void {
  let leaves = 0;
  for (const operation of change) {
    if (operation.write === "insert leaf") {
      // Every leaf needs its own number.
      const number = leaves++ === 0 ? target.sequence : target.next();
      target.deferred.insert(writes.leaf.statement, leafToRow(operation.row, number));
      continue;
    }
    const written = apply(target, operation, change);
    if (written === 0 && operation.write === "insert response")
      throw idTakenError("stored response");
  }
}

/** Returns the number of changed rows. A deferred row counts as one. */
function apply(
  target: WriteTarget,
  operation: Exclude<Operation, { readonly write: "insert leaf" }>,
  change: Change,
): number {
  const { known, deferred, view, sequence } = target;
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
    case "insert part":
      return insert(target, writes.part.statement, partToRow(operation.row));
    case "insert error":
      return insert(target, writes.error.statement, errorRows.toRow(operation.row));
    case "insert decision":
    case "claim decision": {
      const { owner, decision } = operation.row;
      const first = change[0];
      if (first?.write === "insert step" && isEmbeddedPermit(first.row, operation.row)) return 1;
      if (view.hasDecision(owner.organizationId, decision.id)) return 0;
      return insert(target, writes.decision.statement, decisionToRow(owner, decision, sequence));
    }
    case "insert turn":
    case "insert hold":
    case "settle hold":
      // Written with the row of the Step, which is part of the same change.
      return 1;
    case "move counter": {
      const counter = moveCounter(view.counter(operation.row), operation.row);
      known.counters.set(counter);
      deferred.setCounter(counter);
      return 1;
    }
    case "remove step":
      return removeStep(target, nameToRow(operation.row));
    case "erase session":
      deferred.flush();
      return writeRows(target, operation);
    default:
      return writeRows(target, operation);
  }
}

/** Writes the rows of an operation at once. Only rows that most requests write are worth deferring. */
function writeRows(
  { run, sequence }: WriteTarget,
  operation: Parameters<typeof rowsOf>[0],
): number {
  let written = 0;
  for (const [write, row] of rowsOf(operation, sequence))
    written += run(writes[write].statement, row);
  return written;
}

function insert({ deferred }: WriteTarget, statement: string, row: SqlParameters): number {
  deferred.insert(statement, row);
  return 1;
}

function writeSession(
  { deferred, known, sequence }: WriteTarget,
  { row, write }: Extract<Operation, { readonly write: "insert session" | "update session" }>,
): number {
  const session = { ...row, updated: sequence };
  known.sessions.set(row.organizationId, row.id, session);
  known.recent.touch(session, row.updated);
  deferred.setSession(session, write === "insert session");
  return 1;
}

const oldSteps = retentionStatements("steps");

function nameToRow({ organizationId, id }: RowName): SqlParameters {
  return { organization_id: organizationId, id };
}

function insertStep(
  { deferred, known, sequence }: WriteTarget,
  { row, renewal }: Extract<Operation, { readonly write: "insert step" }>,
  change: Change,
): number {
  const { organizationId, id } = row.step;
  const { holds, columns } = embeddedAtOpening(row, change);
  deferred.insert(embeddingStatements.insert, { ...stepToRow(row, sequence), renewal, ...columns });
  known.steps.set(organizationId, id, { record: row, holds });
  return 1;
}

function updateStep({ run, deferred, known, view }: WriteTarget, row: StepRecord, change: Change) {
  const { holds, columns } = embeddedAfter(change, () => view.holds(row));
  const open = known.steps.get(row.step.organizationId, row.step.id);
  if (open) Object.assign(open, { record: row, ...(holds && { holds }) });
  deferred.flush();
  return run(embeddingStatements.nextAttempt, { ...nextAttemptToRow(row), ...columns });
}

function settleStep({ deferred, known, view }: WriteTarget, row: StepRecord, change: Change) {
  const { organizationId, id } = row.step;
  const { columns } = embeddedAfter(change, () => view.holds(row));
  known.steps.remove(organizationId, id);
  // Kept only while a Step of the Session is open. The next Step reads it again.
  if (row.step.sessionId !== null) known.sessions.remove(organizationId, row.step.sessionId);
  deferred.update(embeddingStatements.end, { ...endToRow(row), ...columns });
  return 1;
}

/** Removes a Step, but keeps its holds, its permit and its Turn. */
function removeStep({ run, deferred }: WriteTarget, name: SqlParameters): number {
  deferred.flush();
  run(embeddingStatements.keepHolds, name);
  run(embeddingStatements.keepPermit, name);
  run(embeddingStatements.keepTurn, name);
  return run(oldSteps.removeOne, name);
}
