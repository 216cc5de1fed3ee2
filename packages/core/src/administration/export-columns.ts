import type { CsvField } from "../kernel/csv.ts";
import type { ExportColumn } from "./export.ts";
import type { ActivityRecord, StepRecord } from "./step-records.ts";

/** The first columns of Steps and activity: who, where and when. */
const place = [
  "id",
  "openedAt",
  "settledAt",
  "organizationId",
  "userId",
  "keyId",
  "keyLabel",
  "source",
  "endpoint",
  "stream",
  "sessionId",
  "turnId",
  "stepNumber",
  "dataClass",
  "decisionId",
  "requestedModel",
  "model",
] as const;

/** The columns after them: usage and cost. */
const figures = [
  "finishReason",
  "promptTokens",
  "completionTokens",
  "totalTokens",
  "cachedTokens",
  "reasoningTokens",
  "usageBasis",
  "costNanoUsd",
  "billedTo",
] as const;

/** Columns that were added later. */
const laterFigures = [
  "cacheWriteTokens",
  "cacheWrite1hTokens",
  "audioInputTokens",
  "audioOutputTokens",
  "imageInputTokens",
  "imageOutputTokens",
  "costBasis",
  "serviceTier",
] as const;

/** The latest columns. */
const repeats = ["idempotencyKeySha256", "retryOf"] as const;

/** The columns of a CSV file. Their order is part of the format, so add new ones at the end. */
export const activityColumns: readonly ExportColumn<ActivityRecord>[] = plain<ActivityRecord>()([
  ...place,
  "gateway",
  "provider",
  "host",
  "connection",
  ...figures,
  "priceSource",
  "durationMs",
  "timeToFirstTokenMs",
  "toolCalls",
  ...laterFigures,
  ...repeats,
]);

export const stepColumns: readonly ExportColumn<StepRecord>[] = [
  ...plain<StepRecord>()([...place, "outcome", "reason", ...figures, "head", "replyHead"]),
  ["attempts", ({ attempts }) => attempts.length],
  ...plain<StepRecord>()(laterFigures),
  ["metadata", ({ metadata }) => (isEmpty(metadata) ? null : JSON.stringify(metadata))],
  ["error", ({ attempts }) => attempts.at(-1)?.error?.message ?? null],
  ...plain<StepRecord>()(repeats),
];

function isEmpty(pairs: object): boolean {
  return Object.keys(pairs).length === 0;
}

/** The members of a row that a CSV field can hold. */
type FieldName<Row> = {
  [Name in keyof Row & string]-?: Row[Name] extends CsvField | undefined ? Name : never;
}[keyof Row & string];

/** Columns whose headings are the names of the members that they show. */
function plain<Row>() {
  return (names: readonly FieldName<Row>[]): readonly ExportColumn<Row>[] =>
    names.map((name) => [name, (row: Row) => fieldOf(row[name])]);
}

function fieldOf(value: unknown): CsvField {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? value
    : null;
}
