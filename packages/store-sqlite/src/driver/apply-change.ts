import {
  type Change,
  type HoldRecord,
  type Operation,
  type RowName,
  type StepRecord,
  takenId,
} from "@tollgate/store-engine";
import {
  correcting,
  correctionToRow,
  decisionToRow,
  endToRow,
  erasing,
  errorToRow,
  holding,
  holdToRow,
  insertError,
  leafToRow,
  nextAttemptToRow,
  oldStepsOf,
  opening,
  partToRow,
  responding,
  responseRecordToRow,
  type SqlParameters,
  sessionToRow,
  settling,
  stepToRow,
} from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import type { DeferredRows } from "./deferred-rows.ts";
import type { KnownRows } from "./known-rows.ts";

/** Where a change goes: the database, what is known of it, and the change's place in all that the store wrote. */
export interface Target {
  readonly run: Connection["run"];
  readonly deferred: DeferredRows;
  readonly known: KnownRows;
  readonly sequence: number;
}

/** Writes a change. False, and nothing written, where the Step that it opens was opened before. */
export function applyChange(target: Target, change: Change): boolean {
  for (const operation of change) {
    const written = apply(target, operation);
    if (written === 0 && operation.write === "insert step") return false;
    if (written === 0 && operation.write === "insert session") throw takenId("new Session");
    if (written === 0 && operation.write === "insert response") throw takenId("stored response");
  }
  return true;
}

/** Returns how many rows changed; those that wait to be written count as one. */
function apply(target: Target, operation: Operation): number {
  const { run, known, deferred, sequence } = target;
  const insert = (statement: string, row: SqlParameters): number => {
    deferred.insert(statement, row);
    return 1;
  };
  switch (operation.write) {
    case "insert step":
      return insertStep(target, operation.row, operation.renewal);
    case "update step":
      return updateStep(target, operation.row);
    case "settle step":
      return settleStep(target, operation.row);
    case "insert session":
    case "update session": {
      const { row, write } = operation;
      const session = { ...row, updated: sequence };
      known.sessions.set(row.organizationId, row.id, session);
      known.recent.touch(session, row.updated);
      const statement = write === "insert session" ? opening.insertSession : opening.updateSession;
      return run(statement, sessionToRow(row, sequence));
    }
    case "insert turn": {
      const { organizationId, id, sessionId } = operation.row;
      const turn = { organization_id: organizationId, id, session_id: sessionId };
      return insert(opening.insertTurn, turn);
    }
    case "insert part":
      return insert(opening.insertPart, partToRow(operation.row));
    case "insert error":
      return insert(insertError, errorToRow(operation.row));
    case "insert decision": {
      const { owner, decision } = operation.row;
      return insert(opening.insertDecision, decisionToRow(owner, decision, sequence));
    }
    case "insert hold":
      return insertHold(target, operation.row);
    case "settle hold":
      return settleHold(target, operation.row);
    case "set counter":
      known.counters.set(operation.row);
      deferred.setCounter(operation.row);
      return 1;
    case "insert correction":
      return insert(correcting.insert, correctionToRow(operation.row, sequence));
    case "insert response":
      return run(responding.insert, responseRecordToRow(operation.row));
    case "remove response":
      return run(responding.remove, nameToRow(operation.row));
    case "relink response": {
      const { builtOn, inherited } = operation.row;
      const row = { ...nameToRow(operation.row), built_on: builtOn, inherited };
      return run(responding.relink, row);
    }
    case "remove step":
      return run(oldSteps.removeOne, nameToRow(operation.row));
    case "erase session": {
      const erased = { ...nameToRow(operation.row), nothing };
      deferred.flush();
      return run(erasing.erase, erased) + run(erasing.eraseErrors, erased);
    }
    case "mark erased": {
      const { organizationId, updated } = operation.row;
      return run(erasing.mark, { organization_id: organizationId, updated });
    }
    case "insert leaf":
      return insert(opening.insertLeaf, leafToRow(operation.row, sequence));
  }
}

const oldSteps = oldStepsOf("steps");
const nothing = new Uint8Array();

function nameToRow({ organizationId, id }: RowName): SqlParameters {
  return { organization_id: organizationId, id };
}

function insertStep({ run, known, sequence }: Target, row: StepRecord, renewal: number): number {
  const { organizationId, id } = row.step;
  if (run(opening.insertStep, stepToRow(row, sequence)) === 0) return 0;
  known.steps.set(organizationId, id, { record: row, holds: [] });
  return run(opening.insertOpenStep, {
    process_id: row.processId,
    step_id: id,
    organization_id: organizationId,
    renewal,
    output_tokens: null,
  });
}

function updateStep({ run, known }: Target, row: StepRecord): number {
  const open = known.steps.get(row.step.organizationId, row.step.id);
  if (open) open.record = row;
  return run(settling.nextAttempt, nextAttemptToRow(row));
}

function settleStep({ run, known }: Target, row: StepRecord): number {
  const { organizationId, id } = row.step;
  known.steps.remove(organizationId, id);
  // Known for the Steps that are open on it: another one reads it again.
  known.sessions.remove(organizationId, row.step.sessionId);
  run(settling.settleStep, endToRow(row));
  return run(settling.closeStep, {
    process_id: row.processId,
    organization_id: organizationId,
    id,
  });
}

function insertHold({ run, known }: Target, row: HoldRecord): number {
  const open = known.steps.get(row.organizationId, row.stepId);
  if (open) open.holds = open.holds && [...open.holds, row];
  return run(holding.insertHold, holdToRow(row));
}

/** Of a Step that goes on, its holds are read again. */
function settleHold({ run, known }: Target, row: HoldRecord): number {
  const open = known.steps.get(row.organizationId, row.stepId);
  if (open) open.holds = null;
  return run(holding.settleHold, holdToRow(row));
}
