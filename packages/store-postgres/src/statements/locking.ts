import { administration, erasing, keyColumns, responding } from "@tollgate/store-sql";

/**
 * Statements that lock what they read until the transaction ends, so that it is still so when the change is written.
 * One order everywhere: Step, Session, budget counters by (budget, subject, period), keys by id or responses alone.
 */
export const locking = {
  step: `SELECT outcome, user_id, key_id, session_id, holds, attempt, attempt_start, earlier_attempts,
      carried_usd, carried_tokens
    FROM steps WHERE organization_id = :organization_id AND id = :id FOR UPDATE`,
  key: `SELECT ${keyColumns.join(", ")} FROM api_keys
    WHERE organization_id = :organization_id AND id = :id FOR UPDATE`,
  /** A turn to change budgets: what a change finds of them, no other changes meanwhile. */
  budgets: `${administration.readState} FOR NO KEY UPDATE`,
  policyVersion: `${administration.policyVersion} FOR UPDATE`,
  keysOfUser: `${administration.keysOfUser} FOR UPDATE`,
  removable: `${responding.removable} FOR UPDATE`,
  link: `${responding.link} FOR UPDATE`,
  oldSession: `${erasing.oldSession} FOR UPDATE`,
  /** A turn to sweep: one process at a time, so that none does what another has done. */
  sweep: "SELECT pg_advisory_xact_lock(hashtextextended('sweep', 2))",
  /** A turn to remove responses of one organization. */
  removals: "SELECT pg_advisory_xact_lock(hashtextextended(:organization_id, 1))",
} as const;
