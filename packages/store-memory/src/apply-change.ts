import {
  type Change,
  type ClaimRecord,
  type ContentName,
  type CorrectionRecord,
  type Decision,
  type DecisionRecord,
  type ErrorRecord,
  type HoldRecord,
  idTakenError,
  isSameHold,
  moveCounter,
  type Operation,
  type PartRecord,
  type ResponseRecord,
  type RowName,
  type SessionState,
  type StepRecord,
  type View,
} from "@tollgate/store-engine";
import {
  claimKeyOf,
  copyResponse,
  insertLeaf,
  type SessionRow,
  type State,
  type StepRow,
  touchSession,
  turnOf,
} from "./state.ts";
import { viewOf } from "./view.ts";

/** Runs a rule on the state and writes its change. Nothing is awaited in between, so it is atomic. */
export type CarryOut = <Result>(decide: (view: View) => Decision<Result>) => Result;

export function createCarryOut(state: State): CarryOut {
  const view = viewOf(state);
  return (decide) => {
    const { result, change } = decide(view);
    applyChange(state, change);
    return result;
  };
}

/** Shared by the many rows that have no holds, errors or corrections. */
const none: readonly never[] = [];

/** Writes the whole change, or throws before writing any of it. */
function applyChange(state: State, change: Change): void {
  for (const operation of change) requireFree(state, operation);
  for (const operation of change) apply(state, operation);
}

function requireFree(state: State, { write, row }: Operation): void {
  if (write === "insert session" && state.sessions.get(row.organizationId, row.id))
    throw idTakenError("new Session");
  if (write === "insert response" && state.responses.response(row.organizationId, row.id))
    throw idTakenError("stored response");
}

function apply(state: State, operation: Operation): void {
  switch (operation.write) {
    case "insert step":
      insertStep(state, operation.row, operation.renewal);
      break;
    case "update step":
      stepOf(state, operation.row.step).record = operation.row;
      break;
    case "settle step":
      settleStep(state, operation.row);
      break;
    case "insert session":
      insertSession(state, operation.row);
      break;
    case "update session":
      touchSession(state, sessionOf(state, operation.row), operation.row);
      break;
    case "insert turn":
      // Found by its first Step, which is part of the same change.
      break;
    case "insert part":
      insertPart(state, operation.row);
      break;
    case "insert error":
      insertError(state, operation.row);
      break;
    case "insert decision":
    case "claim decision":
      insertDecision(state, operation.row);
      break;
    case "insert hold":
      insertHold(state, operation.row);
      break;
    case "settle hold":
      settleHold(state, operation.row);
      break;
    case "move counter":
      state.counters.set(moveCounter(state.counters.get(operation.row), operation.row));
      break;
    case "insert correction":
      insertCorrection(state, operation.row);
      break;
    case "insert usage":
      state.usage[operation.row.detail].insert(operation.row);
      break;
    case "insert response":
      insertResponse(state, operation.row);
      break;
    case "remove response":
      state.responses.remove(operation.row);
      break;
    case "hide response":
      hideResponse(state, operation.row);
      break;
    case "remove step":
      removeStep(state, operation.row);
      break;
    case "erase session":
      eraseContents(sessionOf(state, operation.row), operation.row.contents);
      break;
    case "mark erased":
      state.erasedUpTo.set(operation.row.organizationId, operation.row.updated);
      break;
    case "insert leaf":
      insertLeaf(state, operation.row);
      break;
    default:
      applyToClaim(state, operation);
  }
}

function insertStep(state: State, record: StepRecord, renewal: number): void {
  const { id, organizationId } = record.step;
  const row: StepRow = {
    id,
    organizationId,
    renewal,
    record,
    holds: none,
    errors: none,
    corrections: none,
    outputTokens: null,
    lastRenewal: 0,
    opened: state.stepsOpened++,
    openSlot: null,
  };
  state.steps.insert(row);
  row.openSlot = state.openSteps.add(row);
}

function settleStep(state: State, record: StepRecord): void {
  const row = stepOf(state, record.step);
  row.record = record;
  if (row.openSlot !== null) state.openSteps.remove(row.openSlot);
  row.openSlot = null;
}

/** Removes a Step, but keeps the Turn that it began. */
function removeStep(state: State, name: RowName): void {
  const turn = turnOf(state, name);
  state.steps.remove(stepOf(state, name));
  if (turn) state.keptTurns.insert(turn);
}

function insertSession(state: State, record: SessionState): void {
  const { id, organizationId, historyFromSessionId } = record;
  const row: SessionRow = {
    id,
    organizationId,
    record,
    branches: null,
    heirs: null,
    parts: [],
    errors: none,
    erased: { parts: 0, errors: 0 },
  };
  state.sessions.insert(row);
  if (historyFromSessionId !== null) {
    const earlier = sessionOf(state, { organizationId, id: historyFromSessionId });
    earlier.heirs ??= [];
    earlier.heirs.push(row);
  }
  touchSession(state, row, record);
}

function insertPart(state: State, part: PartRecord): void {
  const { organizationId, sessionId: id, content, chain } = part;
  const session = sessionOf(state, { organizationId, id });
  session.parts.push({
    stepId: part.stepId,
    kind: part.kind,
    position: part.position,
    count: part.count,
    chain: textOf(chain, "hex"),
    content: content && textOf(content, "latin1"),
  });
}

function textOf(bytes: Uint8Array, encoding: "hex" | "latin1"): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding);
}

function insertError(state: State, error: ErrorRecord): void {
  const { organizationId, sessionId: id, attempt, content } = error;
  const session = sessionOf(state, { organizationId, id });
  const row = { attempt, message: content && Buffer.from(content).toString() };
  session.errors = [...session.errors, row];
  const step = stepOfRecord(state, error);
  step.errors = [...step.errors, row];
}

function insertResponse(state: State, response: ResponseRecord): void {
  const { builtOn, idempotencyKeySha256 } = response;
  const messages = new Uint8Array(response.messages);
  const inherited = new Uint8Array(response.inherited);
  const copied = copyResponse(response);
  state.responses.set({ ...copied, messages, builtOn, inherited, idempotencyKeySha256 });
}

function hideResponse(
  state: State,
  { organizationId, id, expiresAt }: RowName & Pick<ResponseRecord, "expiresAt">,
): void {
  const response = requireRow(state.responses.response(organizationId, id));
  state.responses.set({ ...response, expiresAt, body: nothing, input: nothing });
}

const nothing = new Uint8Array();

type ClaimOperation = Extract<Operation, { readonly write: `${string} claim` }>;

/** Changes a claim, unless another Step has it by now. */
function applyToClaim({ claims }: State, operation: ClaimOperation): void {
  const key = claimKeyOf(operation.row);
  if (operation.write === "insert claim") {
    claims.set(key, operation.row);
    return;
  }
  const claim = claims.get(key);
  if (claim?.stepId !== operation.row.stepId) return;
  if (operation.write === "remove claim") claims.delete(key);
  else claims.set(key, { ...claim, answer: null, ...changeOf(operation) });
}

function changeOf(
  operation: Extract<ClaimOperation, { readonly write: "settle claim" | "forget claim" }>,
): Partial<ClaimRecord> {
  return operation.write === "settle claim" ? operation.row.ending : { state: "not_kept" };
}

function insertCorrection(state: State, correction: CorrectionRecord): void {
  const step = stepOfRecord(state, correction);
  step.corrections = [...step.corrections, correction];
  state.corrections.push({ step, correction });
}

function insertDecision(state: State, { owner, decision }: DecisionRecord): void {
  const { organizationId, userId, keyId } = owner;
  state.decisions.insert({ organizationId, userId, keyId, id: decision.id, decision });
}

function insertHold(state: State, hold: HoldRecord): void {
  const row = stepOfRecord(state, hold);
  if (row.holds.length === 0) state.stepsWithHolds.push(row);
  row.holds = [...row.holds, hold];
}

function settleHold(state: State, settled: HoldRecord): void {
  const row = stepOfRecord(state, settled);
  row.holds = row.holds.map((hold) => (isSameHold(hold, settled) ? settled : hold));
}

function eraseContents(
  { parts, errors, erased }: SessionRow,
  contents: readonly ContentName[],
): void {
  for (const { of, place } of contents)
    if (of === "part") {
      const part = parts[place];
      if (part) part.content = null;
      erased.parts = place + 1;
    } else {
      const error = errors[place];
      if (error) error.message = null;
      erased.errors = place + 1;
    }
}

function sessionOf(state: State, { organizationId, id }: RowName): SessionRow {
  return requireRow(state.sessions.get(organizationId, id));
}

function stepOf(state: State, { organizationId, id }: RowName): StepRow {
  return requireRow(state.steps.get(organizationId, id));
}

function stepOfRecord(
  state: State,
  { organizationId, stepId }: { readonly organizationId: string; readonly stepId: string },
): StepRow {
  return stepOf(state, { organizationId, id: stepId });
}

/** A change only names rows that its rule has seen or that it inserts itself. */
function requireRow<Row>(row: Row | null): Row {
  if (row === null) throw new TypeError("A change names a row that doesn't exist.");
  return row;
}
