const most = Number.MAX_SAFE_INTEGER;

/** A pace depends on the time and has no ledger. */
const isCounted = "unit NOT IN ('requests_pace', 'tokens_pace')";

/** Statements that compare counters with their ledger. */
export const reconciliationStatements = {
  counters: `SELECT count(*) AS counters FROM budget_counters WHERE ${isCounted}`,
  /**
   * One statement, so it sees holds, corrections and counters at the same moment. It scans every hold once: holds are
   * indexed by Step, and a second index by counter would cost every request a write.
   */
  drift: `WITH corrected (organization_id, step_id, attempt, usd, tokens) AS (
      SELECT organization_id, step_id, held_by, sum(usd_delta), sum(tokens_delta) FROM corrections
      WHERE held_by IS NOT NULL GROUP BY organization_id, step_id, held_by),
    ledger (budget_id, subject, period_start, unit, settled, held) AS (
      SELECT h.budget_id, h.subject, h.period_start, min(h.unit),
        sum(coalesce(h.settled, 0) + CASE h.unit WHEN 'usd' THEN coalesce(c.usd, 0)
          WHEN 'tokens' THEN coalesce(c.tokens, 0) ELSE 0 END),
        sum(CASE WHEN h.settled IS NULL THEN h.amount ELSE 0 END)
      FROM holds h LEFT JOIN corrected c ON c.organization_id = h.organization_id
        AND c.step_id = h.step_id AND c.attempt = h.attempt
      WHERE h.${isCounted}
      GROUP BY h.budget_id, h.subject, h.period_start),
    compared AS (
      SELECT coalesce(c.budget_id, l.budget_id) AS budget_id, coalesce(c.subject, l.subject) AS subject,
        coalesce(c.period_start, l.period_start) AS period_start, coalesce(c.unit, l.unit) AS unit,
        coalesce(c.settled, 0) AS settled, coalesce(c.held, 0) AS held,
        CASE WHEN l.settled > ${most} THEN ${most} ELSE coalesce(l.settled, 0) END AS ledger_settled,
        coalesce(l.held, 0) AS ledger_held
      FROM (SELECT * FROM budget_counters WHERE ${isCounted}) c FULL JOIN ledger l ON l.budget_id = c.budget_id
        AND l.subject = c.subject AND l.period_start = c.period_start)
    SELECT * FROM compared WHERE settled <> ledger_settled OR held <> ledger_held
    ORDER BY budget_id, subject, period_start LIMIT :limit`,
} as const;
