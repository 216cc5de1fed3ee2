import type { Operation, RowName } from "@tollgate/store-engine";
import { holdToRow } from "./rows/budget-row.ts";
import {
  claimNameToRow,
  claimToRow,
  forgottenClaimToRow,
  settledClaimToRow,
} from "./rows/claim-row.ts";
import { correctionToRow } from "./rows/correction-row.ts";
import { decisionToRow } from "./rows/decision-row.ts";
import { errorRows } from "./rows/error-row.ts";
import { leafToRow } from "./rows/leaf-row.ts";
import { partToRow } from "./rows/part-row.ts";
import { hiddenResponseToRow, responseRecordToRow } from "./rows/response-row.ts";
import { sessionToRow } from "./rows/session-row.ts";
import {
  endColumns,
  endToRow,
  nextAttemptColumns,
  nextAttemptToRow,
  stepColumns,
  stepToRow,
} from "./rows/step-row.ts";
import { usageRows } from "./rows/usage-row.ts";
import { insertInto, type SqlParameters } from "./statement.ts";
import { columnsOf, type TableName } from "./tables.ts";

/** One way to write rows of a table. */
export interface RowWrite {
  /**
   * `insert` writes a new row. `claim` writes a row that must not exist yet; if it exists, nothing of the change is
   * written. `note` writes a row unless it exists, `set` whether or not it exists. `update` changes some columns, and
   * `remove` deletes the rows with this key.
   */
  readonly kind: "insert" | "claim" | "note" | "set" | "update" | "remove";
  readonly table: TableName;
  /** The columns that find the rows, for `set`, `update` and `remove`. */
  readonly key: readonly string[];
  /** Every column that is written or compared. */
  readonly columns: readonly string[];
  /** The column that stores the number of the change. */
  readonly numbered: string | null;
  /** The statement that writes one such row. */
  readonly statement: string;
}

const byId = ["organization_id", "id"];
const ofPart = ["organization_id", "session_id", "position", "step_id"];
const ofError = ["organization_id", "step_id", "attempt"];
const byOpenStep = ["process_id", "step_id", "organization_id"];
const ofClaim = ["organization_id", "key_id", "endpoint", "idempotency_key", "step_id"];
const ofHold = ["organization_id", "step_id", "attempt", "budget_id", "subject", "period_start"];

/** Every way in which the changes of decisions write rows, except counters, in the order of writing. */
export const writes = {
  step: insertion("claim", "steps", "sequence", stepColumns),
  openStep: insertion("insert", "open_steps"),
  nextAttempt: update("steps", byId, nextAttemptColumns),
  endedStep: update("steps", byId, endColumns),
  closedStep: removal("open_steps", byOpenStep),
  removedStep: removal("steps", byId),
  session: insertion("claim", "sessions", "updated"),
  movedSession: update(
    "sessions",
    byId,
    ["head", "length", "updated", "updated_at", "in_flight", "turn_id", "data_classes"],
    "updated",
  ),
  turn: insertion("note", "turns"),
  response: insertion("claim", "responses"),
  hiddenResponse: update("responses", byId, ["expires_at", "body", "input"]),
  removedResponse: removal("responses", byId),
  // An expired claim goes before the one that replaces it.
  removedClaim: removal("claims", ofClaim),
  claim: insertion("claim", "claims"),
  settledClaim: update("claims", ofClaim, ["state", "expires_at", "model", "headers", "body"]),
  forgottenClaim: update("claims", ofClaim, ["state", "model", "headers", "body"]),
  part: insertion("insert", "transcript_parts"),
  erasedPart: update("transcript_parts", ofPart, ["content", "salt"]),
  error: insertion("insert", "attempt_errors"),
  erasedError: update("attempt_errors", ofError, ["content", "salt"]),
  erasure: rowWrite("set", "erasures", ["organization_id"], columnsOf("erasures")),
  decision: insertion("note", "decisions", "sequence"),
  claimedDecision: insertion("claim", "decisions", "sequence"),
  hold: insertion("insert", "holds"),
  settledHold: update("holds", ofHold, ["settled"]),
  correction: insertion("insert", "corrections", "sequence"),
  usageHour: insertion("note", "usage_hours"),
  leaf: insertion("insert", "leaves", "sequence"),
} as const satisfies Readonly<Record<string, RowWrite>>;

type WriteName = keyof typeof writes;

function insertion(
  kind: "insert" | "claim" | "note",
  table: TableName,
  numbered: string | null = null,
  columns = columnsOf(table),
): RowWrite {
  return rowWrite(kind, table, [], columns, numbered);
}

function update(
  table: TableName,
  key: readonly string[],
  changed: readonly string[],
  numbered: string | null = null,
): RowWrite {
  return rowWrite("update", table, key, [...key, ...changed], numbered);
}

function removal(table: TableName, key: readonly string[]): RowWrite {
  return rowWrite("remove", table, key, key);
}

function rowWrite(
  kind: RowWrite["kind"],
  table: TableName,
  key: readonly string[],
  columns: readonly string[],
  numbered: string | null = null,
): RowWrite {
  const write = { kind, table, key, columns, numbered };
  return { ...write, statement: statementOf(write) };
}

function statementOf({ kind, table, key, columns }: Omit<RowWrite, "statement">): string {
  const found = key.map((column) => `${column} = :${column}`).join(" AND ");
  const changed = columns.filter((column) => !key.includes(column));
  switch (kind) {
    case "insert":
      return insertInto(table, columns);
    case "claim":
    case "note":
      return `${insertInto(table, columns)} ON CONFLICT DO NOTHING`;
    case "set":
      return `${insertInto(table, columns)} ON CONFLICT (${key.join(", ")})
        DO UPDATE SET ${changed.map((column) => `${column} = excluded.${column}`).join(", ")}`;
    case "update":
      return `UPDATE ${table} SET ${changed.map((column) => `${column} = :${column}`).join(", ")}
        WHERE ${found}`;
    case "remove":
      return `DELETE FROM ${table} WHERE ${found}`;
  }
}

/** An operation that writes rows: every operation except those that move a counter. */
type RowOperation = Exclude<Operation, { readonly write: "move counter" }>;

/** A row and how it is written. */
type NamedRow = readonly [name: WriteName, row: SqlParameters];

/** The rows of an operation, in order. `sequence` is the number of its change. */
export function rowsOf(operation: RowOperation, sequence: number): readonly NamedRow[] {
  switch (operation.write) {
    case "insert step": {
      const { row, renewal } = operation;
      return [
        ["step", stepToRow(row, sequence)],
        ["openStep", { ...openStepOf(row), renewal, output_tokens: null }],
      ];
    }
    case "update step":
      return [["nextAttempt", nextAttemptToRow(operation.row)]];
    case "settle step":
      return [
        ["endedStep", endToRow(operation.row)],
        ["closedStep", openStepOf(operation.row)],
      ];
    case "remove step":
      return [["removedStep", nameToRow(operation.row)]];
    case "insert session":
      return [["session", sessionToRow(operation.row, sequence)]];
    case "update session":
      return [["movedSession", sessionToRow(operation.row, sequence)]];
    case "insert turn":
      return [["turn", { ...nameToRow(operation.row), session_id: operation.row.sessionId }]];
    case "insert response":
      return [["response", responseRecordToRow(operation.row)]];
    case "hide response":
      return [["hiddenResponse", hiddenResponseToRow(operation.row)]];
    case "remove response":
      return [["removedResponse", nameToRow(operation.row)]];
    case "insert claim":
      return [["claim", claimToRow(operation.row)]];
    case "settle claim":
      return [["settledClaim", settledClaimToRow(operation.row, operation.row.ending)]];
    case "forget claim":
      return [["forgottenClaim", forgottenClaimToRow(operation.row)]];
    case "remove claim":
      return [["removedClaim", claimNameToRow(operation.row)]];
    case "insert part":
      return [["part", partToRow(operation.row)]];
    case "insert error":
      return [["error", errorRows.toRow(operation.row)]];
    case "erase session":
      return erasedRows(operation.row);
    case "mark erased": {
      const { organizationId, updated } = operation.row;
      return [["erasure", { organization_id: organizationId, updated }]];
    }
    case "insert decision":
    case "claim decision": {
      const { owner, decision } = operation.row;
      const name = operation.write === "insert decision" ? "decision" : "claimedDecision";
      return [[name, decisionToRow(owner, decision, sequence)]];
    }
    case "insert hold":
      return [["hold", holdToRow(operation.row)]];
    case "settle hold":
      return [["settledHold", holdToRow(operation.row)]];
    case "insert correction":
      return [["correction", correctionToRow(operation.row, sequence)]];
    case "insert usage":
      return [["usageHour", usageRows.toRow(operation.row)]];
    case "insert leaf":
      return [["leaf", leafToRow(operation.row, sequence)]];
  }
}

const nothing = new Uint8Array();

/** The erased parts and errors of a Session. */
function erasedRows({
  organizationId: organization_id,
  id: session_id,
  contents,
}: Extract<RowOperation, { write: "erase session" }>["row"]): readonly NamedRow[] {
  return contents.map(({ of, stepId: step_id, place }) => {
    const erased = { organization_id, step_id, content: null, salt: nothing };
    return of === "part"
      ? ["erasedPart", { ...erased, session_id, position: place }]
      : ["erasedError", { ...erased, attempt: place }];
  });
}

function nameToRow({ organizationId, id }: RowName): SqlParameters {
  return { organization_id: organizationId, id };
}

function openStepOf({
  step,
  processId,
}: Extract<RowOperation, { write: "insert step" }>["row"]): SqlParameters {
  return { process_id: processId, step_id: step.id, organization_id: step.organizationId };
}
