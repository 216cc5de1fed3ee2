import type {
  Attempt,
  AttemptEnd,
  AttemptStart,
  DroppedFields,
  Endpoint,
  Metadata,
  Step,
  StepIntent,
  StepOutcome,
} from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";
import { toHex } from "./session-row.ts";

/** The columns that are written when a Step opens. */
export const stepColumns = [
  "organization_id",
  "id",
  "user_id",
  "key_id",
  "key_label",
  "source",
  "endpoint",
  "stream",
  "requested_model",
  "data_class",
  "decision_id",
  "session_id",
  "turn_id",
  "step_number",
  "dropped_fields",
  "metadata",
  "process_id",
  "opened_at",
  "outcome",
  "head",
  "length",
  "opened_session",
  "branched_from_session_id",
  "holds",
  "gateway",
  "vendor",
  "model",
  "connection",
  "attempt",
  "attempt_start",
  "carried_usd",
  "carried_tokens",
  "sequence",
] as const;

/** The columns that make a Step when it is read. */
export const stepReadColumns = [
  ...stepColumns,
  "settled_at",
  "reason",
  "finish_reason",
  "reply_head",
  "attempt_end",
  "earlier_attempts",
] as const;

/** What the store finds out while it opens a Step. */
export interface StepPlace {
  readonly keyLabel: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly openedSession: boolean;
  readonly branchedFromSessionId: string | null;
  readonly head: Uint8Array;
  readonly length: number;
  readonly sequence: number;
}

/** A Step that opens, as the parameters of its row. */
export function stepToRow(intent: StepIntent, place: StepPlace): SqlParameters {
  return {
    organization_id: intent.owner.organizationId,
    id: intent.stepId,
    user_id: intent.owner.userId,
    key_id: intent.owner.keyId,
    key_label: place.keyLabel,
    source: intent.source,
    endpoint: intent.endpoint,
    stream: intent.stream ? 1 : 0,
    requested_model: intent.requestedModel,
    data_class: intent.dataClass,
    decision_id: intent.decision.id,
    session_id: place.sessionId,
    turn_id: place.turnId,
    step_number: intent.stepNumber,
    dropped_fields: droppedFieldsJson(intent.droppedFields),
    metadata: metadataText(intent.metadata),
    process_id: intent.process.id,
    opened_at: intent.at,
    outcome: "open",
    head: place.head,
    length: place.length,
    opened_session: place.openedSession ? 1 : 0,
    branched_from_session_id: place.branchedFromSessionId,
    holds: intent.holds.length,
    carried_usd: 0,
    carried_tokens: 0,
    sequence: place.sequence,
    ...attemptToRow(intent.attempt),
  };
}

/** Null for none: most requests have none. */
export function droppedFieldsJson(fields: DroppedFields): string | null {
  return Object.keys(fields).length === 0 ? null : JSON.stringify(fields);
}

/** One line per pair, so that a filter can search for a pair as text; null for none. */
export function metadataText(metadata: Metadata): string | null {
  const pairs = Object.entries(metadata);
  return pairs.length === 0 ? null : pairs.map(pairText).join("");
}

/** One pair as a line: its JSON has no line break, and equal texts have equal JSON. */
export function pairText(pair: readonly [name: string, value: string]): string {
  return `\n${JSON.stringify(pair)}\n`;
}

function metadataOf(text: string | null): Metadata {
  const lines = (text ?? "").split("\n").filter(Boolean);
  return Object.fromEntries(lines.map((line): [string, string] => JSON.parse(line)));
}

/** The columns that name the running attempt, for filters and for reading it back. */
export function attemptToRow(attempt: AttemptStart): SqlParameters {
  return {
    gateway: attempt.gateway,
    vendor: attempt.vendor,
    model: attempt.model,
    connection: attempt.connection,
    attempt: attempt.number,
    attempt_start: JSON.stringify(attempt),
  };
}

/** The Step a row of `stepReadColumns` holds. */
export function stepFromRow(row: unknown): Step {
  const read = readRow(row);
  const outcome = read.text("outcome");
  const replyHead = read.bytesOrNull("reply_head");
  const running: Attempt = {
    ...read.json<AttemptStart>("attempt_start"),
    end: read.jsonOrNull<AttemptEnd>("attempt_end"),
  };
  return {
    id: read.text("id"),
    organizationId: read.text("organization_id"),
    userId: read.text("user_id"),
    keyId: read.text("key_id"),
    keyLabel: read.text("key_label"),
    source: read.text("source"),
    endpoint: endpointOf(read.text("endpoint")),
    stream: read.integer("stream") === 1,
    requestedModel: read.text("requested_model"),
    dataClass: read.text("data_class"),
    decisionId: read.text("decision_id"),
    sessionId: read.text("session_id"),
    turnId: read.text("turn_id"),
    stepNumber: read.integer("step_number"),
    droppedFields: read.jsonOrNull<DroppedFields>("dropped_fields") ?? {},
    metadata: metadataOf(read.textOrNull("metadata")),
    openedAt: read.integer("opened_at"),
    settledAt: read.integerOrNull("settled_at"),
    outcome: outcome === "open" ? null : outcomeOf(outcome),
    reason: read.textOrNull("reason"),
    finishReason: read.textOrNull("finish_reason"),
    attempts: [...(read.jsonOrNull<readonly Attempt[]>("earlier_attempts") ?? []), running],
    head: toHex(read.bytes("head")),
    replyHead: replyHead && toHex(replyHead),
  };
}

/** A column's text as an outcome; throws a TypeError for any other text, `open` included. */
export function outcomeOf(text: string): StepOutcome {
  switch (text) {
    case "completed":
    case "failed":
    case "cancelled":
    case "interrupted":
      return text;
    default:
      throw new TypeError("column outcome does not hold an outcome");
  }
}

function endpointOf(text: string): Endpoint {
  if (text === "chat_completions" || text === "responses") return text;
  throw new TypeError("column endpoint does not hold an endpoint");
}
