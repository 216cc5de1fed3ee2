/** What settling a Step, or opening its next attempt, reads and writes. */
export const settling = {
  step: `SELECT t.outcome, t.user_id, t.key_id, t.session_id, t.process_id, t.head, t.length,
      t.opened_session, t.holds, t.attempt, t.attempt_start, t.earlier_attempts, t.carried_usd,
      t.carried_tokens, s.head AS session_head, s.length AS session_length, s.in_flight
    FROM steps t JOIN sessions s
      ON s.organization_id = t.organization_id AND s.id = t.session_id
    WHERE t.organization_id = :organization_id AND t.id = :id`,
  settleStep: `UPDATE steps SET settled_at = :settled_at, outcome = :outcome, reason = :reason,
      finish_reason = :finish_reason, reply_head = :reply_head, host = :host,
      attempt_end = :attempt_end
    WHERE organization_id = :organization_id AND id = :id`,
  touchSession: `UPDATE sessions SET head = :head, length = :length, updated = :updated,
      updated_at = :updated_at, in_flight = :in_flight
    WHERE organization_id = :organization_id AND id = :id`,
  closeStep: `DELETE FROM open_steps WHERE process_id = :process_id AND step_id = :id
    AND organization_id = :organization_id`,
  nextAttempt: `UPDATE steps SET gateway = :gateway, vendor = :vendor, model = :model,
      connection = :connection, attempt = :attempt, attempt_start = :attempt_start,
      earlier_attempts = :earlier_attempts, holds = :holds, carried_usd = :carried_usd,
      carried_tokens = :carried_tokens
    WHERE organization_id = :organization_id AND id = :id`,
} as const;
