import type { SqlDialect } from "../dialect.ts";
import { correctionColumns } from "../rows/correction-row.ts";
import { insertInto } from "../statement.ts";

const most = Number.MAX_SAFE_INTEGER;

/** How an attempt's figures are corrected. */
export const correcting = {
  insert: insertInto("corrections", correctionColumns),
  /** The attempt whose holds a later one was charged to. */
  heldBy: `SELECT max(attempt) AS attempt FROM holds
    WHERE organization_id = :organization_id AND step_id = :step_id
      AND attempt BETWEEN :held_since AND :attempt`,
  /** In the one order of locks. */
  holds: `SELECT budget_id, subject, period_start, unit FROM holds
    WHERE organization_id = :organization_id AND step_id = :step_id AND attempt = :held_by
      AND unit <> 'requests'
    ORDER BY budget_id, subject, period_start`,
  move: `UPDATE budget_counters SET settled = CASE WHEN :delta > ${most} - settled THEN ${most}
      WHEN :delta < -settled THEN 0 ELSE settled + :delta END
    WHERE budget_id = :budget_id AND subject = :subject AND period_start = :period_start`,
} as const;

/** The corrections of some Steps of one organization, in the order they were written. */
export function correctionsOf(dialect: SqlDialect): string {
  return `SELECT ${correctionColumns.join(", ")} FROM corrections
    WHERE organization_id = :organization_id AND ${dialect.isOneOf("step_id", ":step_ids")}
    ORDER BY sequence`;
}
