import { keyColumns, opening, responding, settling } from "@tollgate/store-sql";

/**
 * Statements that lock what they read until the transaction ends, so that it is still so when the change is written.
 * One order everywhere: Step, Session, budget counters by (budget, subject, period), key or response alone.
 */
export const locking = {
  session: `${opening.session} FOR UPDATE`,
  sessionOfTurn: `${opening.sessionOfTurn} FOR UPDATE OF s`,
  step: `${settling.step} FOR UPDATE`,
  /** The counters that a Step's running holds are on. */
  counters: `SELECT c.budget_id FROM holds h JOIN budget_counters c
      ON c.budget_id = h.budget_id AND c.subject = h.subject AND c.period_start = h.period_start
    WHERE h.organization_id = :organization_id AND h.step_id = :step_id AND h.settled IS NULL
    ORDER BY c.budget_id, c.subject, c.period_start FOR UPDATE OF c`,
  key: `SELECT ${keyColumns.join(", ")} FROM api_keys
    WHERE organization_id = :organization_id AND id = :id FOR UPDATE`,
  /** A response that is continued cannot go before the one that continues it stands. */
  standing: `${responding.standing} FOR KEY SHARE`,
  removable: `${responding.removable} FOR UPDATE`,
  link: `${responding.link} FOR UPDATE`,
  /** A turn to remove responses of one organization. */
  removals: "SELECT pg_advisory_xact_lock(hashtextextended(:organization_id, 1))",
} as const;
