import {
  type Budget,
  type BudgetCounter,
  type BudgetRaise,
  budgetModes,
  budgetPeriods,
  budgetUnits,
  type HoldUnit,
  type RateLimit,
  ratePeriods,
  rateUnits,
} from "@tollgate/core/store";
import type { CounterMove, HoldRecord } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { describeRow } from "./describe-row.ts";
import { readRow } from "./row-reader.ts";

const holdUnits: readonly HoldUnit[] = [...budgetUnits, "steps", "requests_pace", "tokens_pace"];

/** The rows of budgets. */
export const budgetRows = describeRow<Budget>(
  {
    id: "text",
    scope: "json",
    unit: budgetUnits,
    limit: "integer",
    period: budgetPeriods,
    mode: budgetModes,
    warnAt: "json",
  },
  { limit: "amount" },
);

/** The rows of rate limits. */
export const rateLimitRows = describeRow<RateLimit>(
  {
    id: "text",
    scope: "json",
    unit: rateUnits,
    limit: "integer",
    per: [...ratePeriods, null],
    burst: "integer",
  },
  { limit: "amount", per: "period" },
);

/** The rows of raises. */
export const raiseRows = describeRow<BudgetRaise>({
  id: "text",
  budgetId: "text",
  unit: budgetUnits,
  amount: "integer",
  at: "integer",
  until: "integer",
  actor: "textOrNull",
});

/** The counter in a row. */
export function counterFromRow(row: unknown): BudgetCounter {
  const read = readRow(row);
  return {
    budgetId: read.text("budget_id"),
    subject: read.text("subject"),
    periodStart: read.integer("period_start"),
    unit: read.oneOf("unit", holdUnits),
    settled: read.integer("settled"),
    held: read.integer("held"),
  };
}

/** A counter as the parameters of its row. */
export function counterToRow({
  budgetId,
  subject,
  periodStart,
  ...counter
}: BudgetCounter): SqlParameters {
  const { unit, settled, held } = counter;
  return { budget_id: budgetId, subject, period_start: periodStart, unit, settled, held };
}

/** The amounts that a counter moves by, as parameters. */
export function moveToRow(move: CounterMove): SqlParameters {
  const { budgetId, subject, periodStart, unit, floor, settled, held, taken, limit } = move;
  const counter = { budget_id: budgetId, subject, period_start: periodStart, unit };
  return { ...counter, floor, settled, held, taken, room: limit };
}

/** The rows that holds are read from. */
export const holdRows = describeRow<HoldRecord>({
  organizationId: "text",
  stepId: "text",
  attempt: "integer",
  budgetId: "text",
  subject: "text",
  periodStart: "integer",
  unit: holdUnits,
  amount: "integer",
  settled: "integerOrNull",
});

/** A hold as the parameters of its row. */
export function holdToRow(hold: HoldRecord): SqlParameters {
  return {
    organization_id: hold.organizationId,
    step_id: hold.stepId,
    attempt: hold.attempt,
    budget_id: hold.budgetId,
    subject: hold.subject,
    period_start: hold.periodStart,
    unit: hold.unit,
    amount: hold.amount,
    settled: hold.settled,
  };
}
