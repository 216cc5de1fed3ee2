import {
  type Attempt,
  type AttemptEnd,
  type AttemptStart,
  type DroppedFields,
  type EndpointName,
  endpointNames,
  type Metadata,
  type Step,
  type StepOutcome,
} from "@tollgate/core/store";
import type { StepRecord } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";
import { fromHex, toHex } from "./session-row.ts";

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
  "idempotency_key",
  "retry_of",
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

/** The columns that a Step is read from. */
export const stepReadColumns = [
  ...stepColumns,
  "settled_at",
  "reason",
  "finish_reason",
  "reply_head",
  "attempt_end",
  "earlier_attempts",
] as const;

/** A Step that opens, as the parameters of its row; `sequence` is its place in the order of the store's writes. */
export function stepToRow(record: StepRecord, sequence: number): SqlParameters {
  const { step, carried } = record;
  return {
    organization_id: step.organizationId,
    id: step.id,
    user_id: step.userId,
    key_id: step.keyId,
    key_label: step.keyLabel,
    source: step.source,
    endpoint: step.endpoint,
    stream: step.stream ? 1 : 0,
    requested_model: step.requestedModel,
    data_class: step.dataClass,
    decision_id: step.decisionId,
    session_id: step.sessionId,
    turn_id: step.turnId,
    step_number: step.stepNumber,
    dropped_fields: droppedFieldsJson(step.droppedFields),
    metadata: metadataText(step.metadata),
    idempotency_key: step.idempotencyKeySha256 && fromHex(step.idempotencyKeySha256),
    retry_of: step.retryOf,
    process_id: record.processId,
    opened_at: step.openedAt,
    outcome: "open",
    head: step.head === null ? null : fromHex(step.head),
    length: record.length,
    opened_session: record.openedSession ? 1 : 0,
    branched_from_session_id: record.branchedFromSessionId,
    holds: record.holds,
    carried_usd: carried.usd,
    carried_tokens: carried.tokens,
    sequence,
    ...attemptToRow(attemptsOf(step).running),
  };
}

/** The columns of a Step's row that a further attempt changes. */
export function nextAttemptToRow({ step, holds, carried }: StepRecord): SqlParameters {
  const { earlier, running } = attemptsOf(step);
  return {
    organization_id: step.organizationId,
    id: step.id,
    earlier_attempts: JSON.stringify(earlier),
    holds,
    carried_usd: carried.usd,
    carried_tokens: carried.tokens,
    ...attemptToRow(running),
  };
}

/** The columns of a Step's row that its end changes. */
export function endToRow({ step }: StepRecord): SqlParameters {
  const end = step.attempts.at(-1)?.end ?? null;
  return {
    organization_id: step.organizationId,
    id: step.id,
    settled_at: step.settledAt,
    outcome: step.outcome,
    reason: step.reason,
    finish_reason: step.finishReason,
    reply_head: step.replyHead === null ? null : fromHex(step.replyHead),
    host: end?.host ?? null,
    attempt_end: JSON.stringify(end),
  };
}

/** A Step's attempts as its row stores them while the last one runs. */
function attemptsOf({ attempts }: Step): {
  readonly earlier: readonly Attempt[];
  readonly running: AttemptStart;
} {
  const last = attempts.at(-1);
  if (!last) throw new TypeError("a Step has no attempt");
  const { end, ...running } = last;
  return { earlier: attempts.slice(0, -1), running };
}

/** Null for no metadata, as in most requests. */
function droppedFieldsJson(fields: DroppedFields): string | null {
  return Object.keys(fields).length === 0 ? null : JSON.stringify(fields);
}

/** One line per pair, so that a filter can search for a pair as text; null for none. */
function metadataText(metadata: Metadata): string | null {
  const pairs = Object.entries(metadata);
  return pairs.length === 0 ? null : pairs.map(pairText).join("");
}

/** One pair as a line: JSON has no line break, and equal texts have equal JSON. */
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

/** The Step in a row of `stepReadColumns`, with the fields that only the rules read. */
export function stepRecordFromRow(row: unknown): StepRecord {
  const read = readRow(row);
  return {
    step: stepFromRow(row),
    processId: read.text("process_id"),
    length: read.integer("length"),
    openedSession: read.integer("opened_session") === 1,
    branchedFromSessionId: read.textOrNull("branched_from_session_id"),
    holds: read.integer("holds"),
    carried: { usd: read.integer("carried_usd"), tokens: read.integer("carried_tokens") },
  };
}

/** The Step in a row of `stepReadColumns`. */
export function stepFromRow(row: unknown): Step {
  const read = readRow(row);
  const outcome = read.text("outcome");
  const head = read.bytesOrNull("head");
  const replyHead = read.bytesOrNull("reply_head");
  const idempotencyKey = read.bytesOrNull("idempotency_key");
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
    sessionId: read.textOrNull("session_id"),
    turnId: read.textOrNull("turn_id"),
    stepNumber: read.integerOrNull("step_number"),
    droppedFields: read.jsonOrNull<DroppedFields>("dropped_fields") ?? {},
    metadata: metadataOf(read.textOrNull("metadata")),
    idempotencyKeySha256: idempotencyKey && toHex(idempotencyKey),
    retryOf: read.textOrNull("retry_of"),
    openedAt: read.integer("opened_at"),
    settledAt: read.integerOrNull("settled_at"),
    outcome: outcome === "open" ? null : outcomeOf(outcome),
    reason: read.textOrNull("reason"),
    finishReason: read.textOrNull("finish_reason"),
    attempts: [...(read.jsonOrNull<readonly Attempt[]>("earlier_attempts") ?? []), running],
    head: head && toHex(head),
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
      throw new TypeError("column outcome has an unknown outcome");
  }
}

function endpointOf(text: string): EndpointName {
  const endpoint = endpointNames.find((name) => name === text);
  if (endpoint === undefined) throw new TypeError("column endpoint has an unknown endpoint");
  return endpoint;
}
