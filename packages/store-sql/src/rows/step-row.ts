import {
  type Attempt,
  type AttemptEnd,
  type AttemptStart,
  connectionOwnerships,
  type DroppedFields,
  endpointNames,
  type Metadata,
  type Step,
  type StepOutcome,
  stepOutcomes,
} from "@tollgate/core/store";
import type { StepRecord } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { columnsOf } from "../tables.ts";
import { type RowReader, readRow } from "./row-reader.ts";

/** The columns that a Step is read from. */
export const stepReadColumns = columnsOf("steps").filter(
  (column) => column !== "host" && column !== "unsuccessful",
);

/**
 * The columns that are written when a Step opens. Those that no list filters by are packed into texts, because the cost of a
 * write grows with its columns.
 */
export const stepColumns = stepReadColumns.filter(
  (column) => !["attempt_end", "earlier_attempts", "ending"].includes(column),
);

/** The columns that the start of a further attempt changes. */
export const nextAttemptColumns = [
  ...["gateway", "vendor", "model", "connection"],
  ...["attempt", "attempt_start", "earlier_attempts"],
];

/** The columns that the end of a Step changes. */
export const endColumns = ["outcome", "host", "attempt_end", "ending"];

/** The values in `opening`. */
type StepOpening = readonly [
  stream: boolean,
  requestedModel: string,
  stepNumber: number | null,
  head: string | null,
  openedSession: boolean,
  branchedFromSessionId: string | null,
  idempotencyKeySha256: string | null,
  retryOf: string | null,
  droppedFields: DroppedFields | null,
];

/** The values in `ending`. */
type StepEnding = readonly [
  settledAt: number,
  reason: string | null,
  finishReason: string | null,
  replyHead: string | null,
];

/** The values in `attempt_start`. The decision and the time are null if they are those of the Step. */
type RunningAttempt = readonly [
  decisionId: string | null,
  startedAt: number | null,
  price: AttemptStart["price"],
  serviceTiers: AttemptStart["serviceTiers"],
  estimatedInputTokens: number,
  estimatedOutputTokens: number,
  outputCapFrom: AttemptStart["outputCapFrom"],
  reasons: boolean,
  holds: number,
  carriedUsd: number,
  carriedTokens: number,
];

/** A Step that opens, as the parameters of its row; `sequence` is its place in the order of the store's writes. */
export function stepToRow(record: StepRecord, sequence: number): SqlParameters {
  const { step } = record;
  const { running } = attemptsOf(step);
  const opening: StepOpening = [
    step.stream,
    step.requestedModel,
    step.stepNumber,
    step.head,
    record.openedSession,
    record.branchedFromSessionId,
    step.idempotencyKeySha256,
    step.retryOf,
    Object.keys(step.droppedFields).length === 0 ? null : step.droppedFields,
  ];
  return {
    organization_id: step.organizationId,
    id: step.id,
    user_id: step.userId,
    key_id: step.keyId,
    key_label: step.keyLabel,
    source: step.source,
    endpoint: step.endpoint,
    data_class: step.dataClass,
    decision_id: step.decisionId,
    session_id: step.sessionId,
    turn_id: step.turnId,
    metadata: metadataText(step.metadata),
    process_id: record.processId,
    opened_at: step.openedAt,
    outcome: "open",
    gateway: running.gateway,
    vendor: running.vendor,
    model: running.model,
    connection: running.connection,
    attempt: running.number,
    attempt_start: runningText(record, running),
    length: record.length,
    opening: JSON.stringify(opening),
    sequence,
  };
}

/** The columns of a Step's row that a further attempt changes. */
export function nextAttemptToRow(record: StepRecord): SqlParameters {
  const { step } = record;
  const { earlier, running } = attemptsOf(step);
  return {
    organization_id: step.organizationId,
    id: step.id,
    gateway: running.gateway,
    vendor: running.vendor,
    model: running.model,
    connection: running.connection,
    attempt: running.number,
    attempt_start: runningText(record, running),
    earlier_attempts: JSON.stringify(earlier),
  };
}

/** The columns of a Step's row that its end changes. */
export function endToRow({ step }: StepRecord): SqlParameters {
  const end = step.attempts.at(-1)?.end ?? null;
  const ending: StepEnding = [step.settledAt ?? 0, step.reason, step.finishReason, step.replyHead];
  return {
    organization_id: step.organizationId,
    id: step.id,
    outcome: step.outcome,
    host: end?.host ?? null,
    attempt_end: JSON.stringify(end),
    ending: JSON.stringify(ending),
  };
}

/** A Step's attempts as its row stores them while the last one runs. */
function attemptsOf({ attempts }: Step): {
  readonly earlier: readonly Attempt[];
  readonly running: Attempt;
} {
  const running = attempts.at(-1);
  if (!running) throw new TypeError("a Step has no attempt");
  return { earlier: attempts.slice(0, -1), running };
}

function runningText({ step, holds, carried }: StepRecord, attempt: AttemptStart): string {
  const running: RunningAttempt = [
    attempt.decisionId === step.decisionId ? null : attempt.decisionId,
    attempt.startedAt === step.openedAt ? null : attempt.startedAt,
    attempt.price,
    attempt.serviceTiers,
    attempt.estimatedInputTokens,
    attempt.estimatedOutputTokens,
    attempt.outputCapFrom,
    attempt.reasons,
    holds,
    carried.usd,
    carried.tokens,
  ];
  return JSON.stringify(running);
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

/** The Step in a row of `stepReadColumns`, with the fields that only the rules read. */
export function stepRecordFromRow(row: unknown): StepRecord {
  const read = readRow(row);
  const [, , , , openedSession, branchedFromSessionId] = read.json<StepOpening>("opening");
  const [, , , , , , , , holds, usd, tokens] = read.json<RunningAttempt>("attempt_start");
  return {
    step: stepFromRow(row),
    processId: read.text("process_id"),
    length: read.integer("length"),
    openedSession,
    branchedFromSessionId,
    holds,
    carried: { usd, tokens },
  };
}

/** The Step in a row of `stepReadColumns`. */
export function stepFromRow(row: unknown): Step {
  const read = readRow(row);
  const [stream, requestedModel, stepNumber, head, , , idempotencyKeySha256, retryOf, dropped] =
    read.json<StepOpening>("opening");
  const [settledAt, reason, finishReason, replyHead] =
    read.jsonOrNull<StepEnding>("ending") ?? notEnded;
  return {
    id: read.text("id"),
    organizationId: read.text("organization_id"),
    userId: read.text("user_id"),
    keyId: read.text("key_id"),
    keyLabel: read.text("key_label"),
    source: read.text("source"),
    endpoint: read.oneOf("endpoint", endpointNames),
    stream,
    requestedModel,
    dataClass: read.text("data_class"),
    decisionId: read.text("decision_id"),
    sessionId: read.textOrNull("session_id"),
    turnId: read.textOrNull("turn_id"),
    stepNumber,
    droppedFields: dropped ?? {},
    metadata: metadataOf(read.textOrNull("metadata")),
    idempotencyKeySha256,
    retryOf,
    openedAt: read.integer("opened_at"),
    settledAt,
    outcome: outcomeFrom(read),
    reason,
    finishReason,
    attempts: [
      ...(read.jsonOrNull<readonly Attempt[]>("earlier_attempts") ?? []),
      runningFromRow(row),
    ],
    head,
    replyHead,
  };
}

const notEnded = [null, null, null, null] as const;

function runningFromRow(row: unknown): Attempt {
  const read = readRow(row);
  const [decisionId, startedAt, price, serviceTiers, input, output, outputCapFrom, reasons] =
    read.json<RunningAttempt>("attempt_start");
  return {
    number: read.integer("attempt"),
    decisionId: decisionId ?? read.text("decision_id"),
    gateway: read.text("gateway"),
    vendor: read.text("vendor"),
    model: read.text("model"),
    connection: read.oneOf("connection", connectionOwnerships),
    price,
    serviceTiers,
    estimatedInputTokens: input,
    estimatedOutputTokens: output,
    outputCapFrom,
    reasons,
    startedAt: startedAt ?? read.integer("opened_at"),
    end: read.jsonOrNull<AttemptEnd>("attempt_end"),
  };
}

const outcomes = ["open", ...stepOutcomes] as const;

/** The outcome of the Step in a row. Null while it is open. */
export function outcomeFrom(read: RowReader): StepOutcome | null {
  const outcome = read.oneOf("outcome", outcomes);
  return outcome === "open" ? null : outcome;
}
