const max = Number.MAX_SAFE_INTEGER;

const ofHold = `c.budget_id = h.budget_id AND c.subject = h.subject
  AND c.period_start = h.period_start`;

/** How holds are taken and what they become. */
export const holding = {
  /** Takes an amount on a counter if it fits; otherwise no row changes. The check stands here, inside the write. */
  take: `INSERT INTO budget_counters (budget_id, subject, period_start, unit, settled, held)
    SELECT :budget_id, :subject, :period_start, :unit, 0, :amount
    WHERE :soft = 1 OR (:limit > 0 AND :amount <= :limit)
    ON CONFLICT (budget_id, subject, period_start) DO UPDATE SET held = held + excluded.held
    WHERE :soft = 1 OR settled + held + excluded.held <= :limit`,
  used: `SELECT settled + held AS used FROM budget_counters
    WHERE budget_id = :budget_id AND subject = :subject AND period_start = :period_start`,
  record: `INSERT INTO holds (organization_id, step_id, attempt, budget_id, subject, period_start,
      unit, amount, settled)
    VALUES (:organization_id, :step_id, :attempt, :budget_id, :subject, :period_start,
      :unit, :amount, NULL)`,
  /** Turns the running holds of a Step into what was spent. */
  charge: `UPDATE budget_counters AS c SET held = c.held - h.amount,
      settled = CASE WHEN h.spent > ${max} - c.settled THEN ${max} ELSE c.settled + h.spent END
    FROM (SELECT budget_id, subject, period_start, amount,
        CASE unit WHEN 'requests' THEN amount WHEN 'usd' THEN :usd ELSE :tokens END AS spent
      FROM holds WHERE organization_id = :organization_id AND step_id = :step_id
        AND settled IS NULL) AS h
    WHERE ${ofHold}`,
  settle: `UPDATE holds SET
      settled = CASE unit WHEN 'requests' THEN amount WHEN 'usd' THEN :usd ELSE :tokens END
    WHERE organization_id = :organization_id AND step_id = :step_id AND settled IS NULL`,
} as const;
