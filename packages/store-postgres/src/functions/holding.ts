import { byIndexes, createFunction, type FunctionParameters } from "./function-text.ts";

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

/** Of each hold that Steps take together: whose it is, and what is held. */
export const takeHoldsParameters = {
  organization_ids: "TEXT[]",
  step_ids: "TEXT[]",
  attempts: "BIGINT[]",
  ...holdParameters,
} as const satisfies FunctionParameters;

/** Of each Step that is settled together with others: what it spent. */
export const settleHoldsParameters = {
  organization_ids: "TEXT[]",
  step_ids: "TEXT[]",
  usds: "BIGINT[]",
  tokens: "BIGINT[]",
} as const satisfies FunctionParameters;

export const exchangeHoldsParameters = {
  organization_id: "TEXT",
  step_id: "TEXT",
  usd: "BIGINT",
  tokens: "BIGINT",
  attempt: "BIGINT",
  ...holdParameters,
} as const satisfies FunctionParameters;

/** The holds asked for, as rows `w`. */
const wanted = `unnest(in_hold_budget_ids, in_hold_subjects, in_hold_period_starts, in_hold_units,
    in_hold_amounts, in_hold_limits, in_hold_softs)
  WITH ORDINALITY AS w (budget_id, subject, period_start, unit, amount, limited_to, soft, place)`;

/** The running holds of a Step. */
const running = "organization_id = in_organization_id AND step_id = in_step_id AND settled IS NULL";

/** Takes a hold `w` on its counter. The check stands here, inside the write, on the row as it is once it is locked. */
const take = `INSERT INTO budget_counters (budget_id, subject, period_start, unit, settled, held)
    SELECT w.budget_id, w.subject, w.period_start, w.unit, 0, w.amount
    WHERE w.soft = 1 OR (w.limited_to > 0 AND w.amount <= w.limited_to)
  ON CONFLICT (budget_id, subject, period_start)
    DO UPDATE SET held = budget_counters.held + excluded.held
    WHERE w.soft = 1
      OR budget_counters.settled + budget_counters.held + excluded.held <= w.limited_to;`;

const most = Number.MAX_SAFE_INTEGER;

/** Turns a running hold `h` into what was spent on its counter. */
const charge = `UPDATE budget_counters AS c SET held = c.held - h.amount,
      settled = CASE WHEN h.spent > ${most} - c.settled THEN ${most} ELSE c.settled + h.spent END
    WHERE c.budget_id = h.budget_id AND c.subject = h.subject AND c.period_start = h.period_start;`;

const spent = "CASE unit WHEN 'requests' THEN amount WHEN 'usd' THEN in_usd ELSE in_tokens END";

/** Counters that Steps share are locked in one order, and each once, however many Steps want it. */
const byCounter = `GROUP BY w.budget_id, w.subject, w.period_start
        ORDER BY w.budget_id COLLATE "C", w.subject COLLATE "C", w.period_start`;

/** A wait for a counter has an end. */
const settings = [...byIndexes, "lock_timeout = '1500ms'"];

/** Takes the holds of Steps that open together: all of them, or it raises. Alone, each would learn which does not fit. */
export function takeHolds(name: string): string {
  return createFunction(name, {
    parameters: takeHoldsParameters,
    settings,
    outputs: { taken: "BIGINT" },
    body: `DECLARE
      w RECORD;
    BEGIN
      FOR w IN SELECT w.budget_id, w.subject, w.period_start, min(w.unit) AS unit,
          CAST(sum(w.amount) AS BIGINT) AS amount, min(w.limited_to) AS limited_to,
          min(w.soft) AS soft
        FROM ${wanted} ${byCounter}
      LOOP
        ${take}
        IF NOT FOUND THEN
          RAISE EXCEPTION 'a budget was used up meanwhile' USING ERRCODE = '40001';
        END IF;
      END LOOP;
      INSERT INTO holds (organization_id, step_id, attempt, budget_id, subject, period_start, unit,
          amount, settled)
        SELECT w.*, NULL FROM unnest(in_organization_ids, in_step_ids, in_attempts,
          in_hold_budget_ids, in_hold_subjects, in_hold_period_starts, in_hold_units,
          in_hold_amounts) AS w;
      taken := cardinality(in_step_ids);
    END`,
  });
}

/** Looks without a lock, so that asking for what is long used up costs little; taking the hold is what decides. */
export const firstHoldThatDoesNotFit = `SELECT w.place,
      greatest(0, w.limited_to - coalesce(c.settled + c.held, 0))
    INTO refused_hold, hold_left FROM ${wanted}
    LEFT JOIN budget_counters c ON c.budget_id = w.budget_id AND c.subject = w.subject
      AND c.period_start = w.period_start
    WHERE w.soft = 0 AND (w.limited_to <= 0
      OR coalesce(c.settled + c.held, 0) + w.amount > w.limited_to)
    ORDER BY w.place LIMIT 1;`;

/** Turns the running holds of Steps that are settled together into what each spent. */
export function settleHolds(name: string): string {
  const ofSteps = `unnest(in_organization_ids, in_step_ids, in_usds, in_tokens)
        AS s (organization_id, step_id, usd, tokens)`;
  const isTheirs = `w.organization_id = s.organization_id AND w.step_id = s.step_id
        AND w.settled IS NULL`;
  const spentBySteps = `CASE w.unit WHEN 'requests' THEN w.amount WHEN 'usd' THEN s.usd
        ELSE s.tokens END`;
  return createFunction(name, {
    parameters: settleHoldsParameters,
    settings,
    outputs: { charged: "BIGINT" },
    body: `DECLARE
      h RECORD;
    BEGIN
      FOR h IN SELECT w.budget_id, w.subject, w.period_start, CAST(sum(w.amount) AS BIGINT) AS amount,
          CAST(sum(${spentBySteps}) AS BIGINT) AS spent
        FROM ${ofSteps} JOIN holds w ON ${isTheirs} ${byCounter}
      LOOP
        ${charge}
      END LOOP;
      UPDATE holds AS w SET settled = ${spentBySteps} FROM ${ofSteps} WHERE ${isTheirs};
      charged := cardinality(in_step_ids);
    END`,
  });
}

/**
 * Turns the running holds of a Step into what was spent and takes others. Returns 0, or the place of the first that does
 * not fit: some are taken by then, so whoever called rolls back. The counters of both are locked in one order, so that
 * two Steps that change places do not wait for each other.
 */
export function exchangeHolds(name: string): string {
  return createFunction(name, {
    parameters: exchangeHoldsParameters,
    outputs: { refused: "BIGINT", hold_left: "BIGINT" },
    body: `DECLARE
      counter RECORD; h RECORD; w RECORD;
    BEGIN
      FOR counter IN
        SELECT budget_id, subject, period_start FROM holds WHERE ${running}
        UNION SELECT w.budget_id, w.subject, w.period_start FROM ${wanted}
        ORDER BY 1, 2, 3
      LOOP
        FOR h IN SELECT budget_id, subject, period_start, amount, ${spent} AS spent
            FROM holds WHERE ${running} AND ${isOf("holds")} LOOP
          ${charge}
        END LOOP;
        FOR w IN SELECT * FROM ${wanted} WHERE ${isOf("w")} LOOP
          ${take}
          IF NOT FOUND THEN
            refused := w.place;
            hold_left := greatest(0, w.limited_to - coalesce((
              SELECT c.settled + c.held FROM budget_counters c WHERE ${isOf("c")}), 0));
            RETURN;
          END IF;
        END LOOP;
      END LOOP;
      UPDATE holds SET settled = ${spent} WHERE ${running};
      INSERT INTO holds (organization_id, step_id, attempt, budget_id, subject, period_start, unit,
          amount, settled)
        SELECT in_organization_id, in_step_id, in_attempt, w.budget_id, w.subject, w.period_start,
          w.unit, w.amount, NULL
        FROM ${wanted};
      refused := 0;
    END`,
  });
}

function isOf(rows: string): string {
  const columns = ["budget_id", "subject", "period_start"];
  return columns.map((column) => `${rows}.${column} = counter.${column}`).join(" AND ");
}
