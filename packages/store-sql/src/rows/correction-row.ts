import type { Attempt, Correction, Step } from "@tollgate/core/store";
import type { CorrectionRecord } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

export const correctionColumns = [
  "organization_id",
  "step_id",
  "id",
  "attempt",
  "at",
  "actor",
  "reason",
  "usage",
  "cost",
  "held_by",
  "usd_delta",
  "tokens_delta",
  "sequence",
] as const;

/** A correction as the parameters of its row; `sequence` is its place in the order of the store's writes. */
export function correctionToRow(record: CorrectionRecord, sequence: number): SqlParameters {
  const { correction, delta } = record;
  return {
    organization_id: record.organizationId,
    step_id: record.stepId,
    id: correction.id,
    attempt: record.attempt,
    at: correction.at,
    actor: correction.actor,
    reason: correction.reason,
    usage: JSON.stringify(correction.usage),
    cost: correction.costNanoUsd,
    held_by: record.heldBy,
    usd_delta: delta.usd,
    tokens_delta: delta.tokens,
    sequence,
  };
}

/** The fields of a Step that corrections need. */
export interface Correctable extends Pick<Step, "organizationId" | "id"> {
  readonly attempts: readonly Pick<Attempt, "number" | "corrections">[];
}

/** Steps with their corrections, from rows in the order they were written. */
export function withCorrections<One extends Correctable>(
  steps: readonly One[],
  rows: readonly unknown[],
): readonly One[] {
  if (rows.length === 0) return steps;
  const byAttempt = Map.groupBy(rows, (row) => {
    const read = readRow(row);
    return nameOf(read.text("organization_id"), read.text("step_id"), read.integer("attempt"));
  });
  const withOwn = (
    { organizationId, id }: Correctable,
    attempt: Correctable["attempts"][number],
  ) => {
    const own = byAttempt.get(nameOf(organizationId, id, attempt.number));
    return own ? { ...attempt, corrections: own.map(correctionFromRow) } : attempt;
  };
  return steps.map((step) => ({
    ...step,
    attempts: step.attempts.map((attempt) => withOwn(step, attempt)),
  }));
}

function nameOf(organizationId: string, stepId: string, attempt: number): string {
  return JSON.stringify([organizationId, stepId, attempt]);
}

/** The correction in a row. */
export function correctionFromRow(row: unknown): Correction {
  const read = readRow(row);
  return {
    id: read.text("id"),
    at: read.integer("at"),
    actor: read.textOrNull("actor"),
    reason: read.text("reason"),
    usage: read.json("usage"),
    costNanoUsd: read.integerOrNull("cost"),
  };
}
