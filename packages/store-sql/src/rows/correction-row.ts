import type { Correction } from "@tollgate/core/store";
import type { AttemptCorrection, CorrectionRecord } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { describeRow } from "./describe-row.ts";
import { readRow } from "./row-reader.ts";

const corrections = describeRow<Correction>(
  {
    id: "text",
    at: "integer",
    actor: "textOrNull",
    reason: "text",
    usage: "json",
    costNanoUsd: "integerOrNull",
  },
  { costNanoUsd: "cost" },
);

/** A correction as the parameters of its row; `sequence` is its place in the order of the store's writes. */
export function correctionToRow(record: CorrectionRecord, sequence: number): SqlParameters {
  return {
    ...corrections.toRow(record.correction),
    organization_id: record.organizationId,
    step_id: record.stepId,
    attempt: record.attempt,
    held_by: record.heldBy,
    usd_delta: record.delta.usd,
    tokens_delta: record.delta.tokens,
    sequence,
  };
}

/** The correction in a row. */
export function correctionFromRow(row: unknown): AttemptCorrection {
  return { attempt: readRow(row).integer("attempt"), correction: corrections.fromRow(row) };
}
