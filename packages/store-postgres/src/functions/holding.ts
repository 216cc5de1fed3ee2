import { createFunction, type FunctionParameters } from "./function-text.ts";

/** Holds as parameters: one array for each field, in the one order of locks. */
export const holdParameters = {
  hold_budget_ids: "TEXT[]",
  hold_subjects: "TEXT[]",
  hold_period_starts: "BIGINT[]",
  hold_units: "TEXT[]",
  hold_amounts: "BIGINT[]",
  hold_limits: "BIGINT[]",
  hold_softs: "BIGINT[]",
} as const satisfies FunctionParameters;

export const takeHoldsParameters = {
  organization_id: "TEXT",
  step_id: "TEXT",
  attempt: "BIGINT",
  ...holdParameters,
} as const satisfies FunctionParameters;

/**
 * Takes all holds and returns 0, or the place of the first that does not fit: those before it are taken by then, so
 * whoever called rolls back.
 */
export function takeHolds(name: string): string {
  return createFunction(name, {
    parameters: takeHoldsParameters,
    outputs: { refused: "BIGINT" },
    body: `BEGIN
      FOR i IN 1 .. cardinality(in_hold_budget_ids) LOOP
        -- The check stands here, inside the write, on the row as it is once it is locked.
        INSERT INTO budget_counters (budget_id, subject, period_start, unit, settled, held)
          SELECT in_hold_budget_ids[i], in_hold_subjects[i], in_hold_period_starts[i],
            in_hold_units[i], 0, in_hold_amounts[i]
          WHERE in_hold_softs[i] = 1
            OR (in_hold_limits[i] > 0 AND in_hold_amounts[i] <= in_hold_limits[i])
          ON CONFLICT (budget_id, subject, period_start)
            DO UPDATE SET held = budget_counters.held + excluded.held
          WHERE in_hold_softs[i] = 1
            OR budget_counters.settled + budget_counters.held + excluded.held <= in_hold_limits[i];
        IF NOT FOUND THEN
          refused := i;
          RETURN;
        END IF;
      END LOOP;
      INSERT INTO holds (organization_id, step_id, attempt, budget_id, subject, period_start, unit,
          amount, settled)
        SELECT in_organization_id, in_step_id, in_attempt, h.budget_id, h.subject, h.period_start,
          h.unit, h.amount, NULL
        FROM unnest(in_hold_budget_ids, in_hold_subjects, in_hold_period_starts, in_hold_units,
          in_hold_amounts) AS h (budget_id, subject, period_start, unit, amount);
      refused := 0;
    END`,
  });
}

/** Looks without a lock, so that asking for what is long used up costs little; taking the hold is what decides. */
export const firstHoldThatDoesNotFit = `SELECT min(h.place) INTO refused_hold
    FROM unnest(in_hold_budget_ids, in_hold_subjects, in_hold_period_starts, in_hold_amounts,
        in_hold_limits, in_hold_softs)
      WITH ORDINALITY AS h (budget_id, subject, period_start, amount, limited_to, soft, place)
    LEFT JOIN budget_counters c ON c.budget_id = h.budget_id AND c.subject = h.subject
      AND c.period_start = h.period_start
    WHERE h.soft = 0 AND (h.limited_to <= 0
      OR coalesce(c.settled + c.held, 0) + h.amount > h.limited_to);`;

export const settleHoldsParameters = {
  organization_id: "TEXT",
  step_id: "TEXT",
  usd: "BIGINT",
  tokens: "BIGINT",
} as const satisfies FunctionParameters;

const most = Number.MAX_SAFE_INTEGER;

/** Turns the running holds of a Step into what was spent; returns how many there were. */
export function settleHolds(name: string): string {
  return createFunction(name, {
    parameters: settleHoldsParameters,
    outputs: { charged: "BIGINT" },
    body: `DECLARE
      h RECORD;
      spent BIGINT;
    BEGIN
      charged := 0;
      FOR h IN
        SELECT budget_id, subject, period_start, unit, amount FROM holds
          WHERE organization_id = in_organization_id AND step_id = in_step_id AND settled IS NULL
          ORDER BY budget_id, subject, period_start
      LOOP
        spent := CASE h.unit WHEN 'requests' THEN h.amount WHEN 'usd' THEN in_usd
          ELSE in_tokens END;
        UPDATE budget_counters AS c SET held = c.held - h.amount,
            settled = CASE WHEN spent > ${most} - c.settled THEN ${most} ELSE c.settled + spent END
          WHERE c.budget_id = h.budget_id AND c.subject = h.subject
            AND c.period_start = h.period_start;
        charged := charged + 1;
      END LOOP;
      UPDATE holds SET settled = CASE unit WHEN 'requests' THEN amount WHEN 'usd' THEN in_usd
          ELSE in_tokens END
        WHERE organization_id = in_organization_id AND step_id = in_step_id AND settled IS NULL;
    END`,
  });
}
