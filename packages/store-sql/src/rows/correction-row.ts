import type {
  AppliedCorrection,
  Attempt,
  Correction,
  CorrectionIntent,
  Step,
} from "@tollgate/core/store";
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

/** What the store finds out while it corrects. */
export interface CorrectionPlace extends AppliedCorrection {
  /** The attempt that took the holds it was charged to; null where there are none. */
  readonly heldBy: number | null;
  readonly sequence: number;
}

/** A correction as the parameters of its row. */
export function correctionToRow(intent: CorrectionIntent, place: CorrectionPlace): SqlParameters {
  const { correction, delta } = place;
  return {
    organization_id: intent.organizationId,
    step_id: intent.stepId,
    id: correction.id,
    attempt: intent.correction.attempt,
    at: correction.at,
    actor: correction.actor,
    reason: correction.reason,
    usage: JSON.stringify(correction.usage),
    cost: correction.costNanoUsd,
    held_by: place.heldBy,
    usd_delta: delta.usd,
    tokens_delta: delta.tokens,
    sequence: place.sequence,
  };
}

/** What corrections need to know of a Step. */
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

function correctionFromRow(row: unknown): Correction {
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
