import { stepReadColumns } from "../rows/step-row.ts";

/** What settling a Step, or opening its next attempt, reads and writes. */
export const settling = {
  step: `SELECT ${stepReadColumns.join(", ")} FROM steps
    WHERE organization_id = :organization_id AND id = :id`,
  settleStep: `UPDATE steps SET settled_at = :settled_at, outcome = :outcome, reason = :reason,
      finish_reason = :finish_reason, reply_head = :reply_head, host = :host,
      attempt_end = :attempt_end
    WHERE organization_id = :organization_id AND id = :id`,
  closeStep: `DELETE FROM open_steps WHERE process_id = :process_id AND step_id = :id
    AND organization_id = :organization_id`,
  nextAttempt: `UPDATE steps SET gateway = :gateway, vendor = :vendor, model = :model,
      connection = :connection, attempt = :attempt, attempt_start = :attempt_start,
      earlier_attempts = :earlier_attempts, holds = :holds, carried_usd = :carried_usd,
      carried_tokens = :carried_tokens
    WHERE organization_id = :organization_id AND id = :id`,
} as const;
