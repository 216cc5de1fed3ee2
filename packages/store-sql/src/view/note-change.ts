import type {
  Change,
  HoldRecord,
  Operation,
  ResponseRecord,
  StepRecord,
  ViewedResponse,
} from "@tollgate/store-engine";
import type { KnownRows } from "./known-rows.ts";

/** Keeps the cached rows current after a change was written with its sequence number. */
export function noteChange(known: KnownRows, change: Change, sequence: number): void {
  for (const operation of change) note(known, operation, sequence);
}

function note(known: KnownRows, { write, row }: Operation, sequence: number): void {
  switch (write) {
    case "insert step":
      known.steps.set(row.step.organizationId, row.step.id, { record: row, holds: [] });
      break;
    case "update step":
      noteStep(known, row);
      break;
    case "settle step":
      known.steps.remove(row.step.organizationId, row.step.id);
      break;
    case "insert session":
    case "update session": {
      const session = { ...row, updated: sequence };
      known.sessions.set(row.organizationId, row.id, session);
      known.recent.touch(session, row.updated);
      break;
    }
    case "insert turn":
      known.turns.set(row.organizationId, row.id, row.sessionId);
      break;
    case "insert response":
      known.responses.set(row.organizationId, row.id, responseOf(row));
      break;
    case "remove response":
    case "hide response":
      known.responses.remove(row.organizationId, row.id);
      break;
    case "insert hold":
      noteHold(known, row);
      break;
    case "settle hold":
      noteSettled(known, row);
  }
}

function noteStep({ steps }: KnownRows, record: StepRecord): void {
  const open = steps.get(record.step.organizationId, record.step.id);
  if (open) open.record = record;
}

function noteHold({ steps }: KnownRows, hold: HoldRecord): void {
  const open = steps.get(hold.organizationId, hold.stepId);
  if (open?.holds) open.holds = [...open.holds, hold];
}

/** If a Step continues, its settled holds are read again. */
function noteSettled({ steps }: KnownRows, { organizationId, stepId }: HoldRecord): void {
  const open = steps.get(organizationId, stepId);
  if (open) open.holds = null;
}

/** Keeps only a few fields, because the entry outlives its request. */
function responseOf(response: ResponseRecord): ViewedResponse {
  const { messages, inherited } = response;
  return {
    organizationId: response.organizationId,
    userId: response.userId,
    keyId: response.keyId,
    stepId: response.stepId,
    expiresAt: response.expiresAt,
    builtOn: response.builtOn,
    idempotencyKeySha256: response.idempotencyKeySha256,
    keptBytes: messages.length + inherited.length,
  };
}
