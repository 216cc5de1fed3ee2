import { formatModelId } from "../domain/model-id.ts";
import type { CsvField } from "../kernel/csv.ts";
import type { ActivityRecord } from "./activity-records.ts";
import type { DecisionRecord } from "./decision-records.ts";
import type { ExportColumn } from "./export.ts";
import type { StepRecord } from "./step-records.ts";

/** Who, where and when: the columns that Steps and activity begin with. */
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

/** How much: the columns that follow. */
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

/** What came later. */
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

/** New columns are added at the end: the order is part of the format. */
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
]);

export const stepColumns: readonly ExportColumn<StepRecord>[] = [
  ...plain<StepRecord>()([...place, "outcome", "reason", ...figures, "head", "replyHead"]),
  ["attempts", ({ attempts }) => attempts.length],
  ...plain<StepRecord>()(laterFigures),
  ["metadata", ({ metadata }) => (isEmpty(metadata) ? null : JSON.stringify(metadata))],
  ["error", ({ attempts }) => attempts.at(-1)?.error?.message ?? null],
];

export const decisionColumns: readonly ExportColumn<DecisionRecord>[] = [
  ["id", ({ id }) => id],
  ["at", ({ at }) => at],
  ["organizationId", ({ facts }) => facts.organization],
  ["userId", ({ facts }) => facts.user],
  ["keyId", ({ facts }) => facts.key],
  ["source", ({ facts }) => facts.source],
  ["dataClass", ({ facts }) => facts.dataClass],
  ["model", ({ facts }) => formatModelId(facts)],
  ["connection", ({ facts }) => facts.connection],
  ["effect", ({ effect }) => effect],
  ["rules", ({ rules }) => rules.join(" ")],
  ["reason", ({ reason }) => reason ?? null],
  ["policyVersion", ({ policyVersion }) => policyVersion],
  ["firstDecisionId", ({ firstDecisionId }) => firstDecisionId],
  ["tools", ({ facts }) => facts.tools],
  ["images", ({ facts }) => facts.images],
  ["structuredOutput", ({ facts }) => facts.structuredOutput],
  ["estimatedInputTokens", ({ facts }) => facts.estimatedInputTokens],
  ["estimatedOutputTokens", ({ facts }) => facts.estimatedOutputTokens],
  ["estimatedCostNanoUsd", ({ facts }) => facts.estimatedCostNanoUsd],
  ["serviceTier", ({ facts }) => facts.serviceTier],
  ["refusedBy", ({ refusal }) => refusal?.by ?? null],
  ["refusedBudgetId", (decision) => refusedHoldOf(decision)?.budgetId ?? null],
  ["refusedSubject", (decision) => refusedHoldOf(decision)?.subject ?? null],
  ["refusedUnit", (decision) => refusedHoldOf(decision)?.unit ?? null],
  ["refusedNeeded", (decision) => refusedHoldOf(decision)?.needed ?? null],
  ["refusedLeft", (decision) => refusedHoldOf(decision)?.left ?? null],
  ["refusedParam", ({ refusal }) => (refusal?.by === "price" ? refusal.param : null)],
];

function isEmpty(pairs: object): boolean {
  return Object.keys(pairs).length === 0;
}

function refusedHoldOf({ refusal }: DecisionRecord) {
  return refusal?.by === "budget" ? refusal : null;
}

/** The members of a row that fit into a field. */
type FieldName<Row> = {
  [Name in keyof Row & string]-?: Row[Name] extends CsvField | undefined ? Name : never;
}[keyof Row & string];

/** Columns headed by the members they show. */
function plain<Row>() {
  return (names: readonly FieldName<Row>[]): readonly ExportColumn<Row>[] =>
    names.map((name) => [name, (row: Row) => fieldOf(row[name])]);
}

function fieldOf(value: unknown): CsvField {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? value
    : null;
}
