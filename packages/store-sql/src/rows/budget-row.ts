import {
  type Budget,
  type BudgetCounter,
  type BudgetMode,
  type BudgetRaise,
  type BudgetUnit,
  budgetPeriods,
  type HoldUnit,
  type RateLimit,
  ratePeriods,
} from "@tollgate/core/store";
import type { CounterMove, HoldRecord } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

export const budgetColumns = [
  "id",
  "scope",
  "unit",
  "amount",
  "period",
  "mode",
  "warn_at",
  "sequence",
] as const;

export const raiseColumns = [
  "budget_id",
  "id",
  "unit",
  "amount",
  "at",
  "until",
  "actor",
  "sequence",
] as const;

/** A budget as the parameters of its row; `sequence` is its place among the others. */
export function budgetToRow(budget: Budget, sequence: number): SqlParameters {
  return {
    id: budget.id,
    scope: JSON.stringify(budget.scope),
    unit: budget.unit,
    amount: budget.limit,
    period: budget.period,
    mode: budget.mode,
    warn_at: JSON.stringify(budget.warnAt),
    sequence,
  };
}

/** The budget in a row. */
export function budgetFromRow(row: unknown): Budget {
  const read = readRow(row);
  return {
    id: read.text("id"),
    scope: read.json("scope"),
    unit: read.word("unit", units),
    limit: read.integer("amount"),
    period: read.word("period", budgetPeriods),
    mode: read.word("mode", modes),
    warnAt: read.json("warn_at"),
  };
}

export const rateLimitColumns = [
  "id",
  "scope",
  "unit",
  "amount",
  "period",
  "burst",
  "sequence",
] as const;

/** A rate limit as the parameters of its row; `sequence` is its place among the others. */
export function rateLimitToRow(rateLimit: RateLimit, sequence: number): SqlParameters {
  const { id, scope, unit, limit, per, burst } = rateLimit;
  return { id, scope: JSON.stringify(scope), unit, amount: limit, period: per, burst, sequence };
}

/** The rate limit in a row. */
export function rateLimitFromRow(row: unknown): RateLimit {
  const read = readRow(row);
  return {
    id: read.text("id"),
    scope: read.json("scope"),
    unit: read.word("unit", rateUnits),
    limit: read.integer("amount"),
    per: read.wordOrNull("period", ratePeriods),
    burst: read.integer("burst"),
  };
}

/** A raise as the parameters of its row; `sequence` is its place among the others. */
export function raiseToRow(raise: BudgetRaise, sequence: number): SqlParameters {
  const { budgetId, id, unit, amount, at, until, actor } = raise;
  return { budget_id: budgetId, id, unit, amount, at, until, actor, sequence };
}

/** The raise in a row. */
export function raiseFromRow(row: unknown): BudgetRaise {
  const read = readRow(row);
  return {
    id: read.text("id"),
    budgetId: read.text("budget_id"),
    unit: read.word("unit", units),
    amount: read.integer("amount"),
    at: read.integer("at"),
    until: read.integer("until"),
    actor: read.textOrNull("actor"),
  };
}

/** The counter in a row. */
export function counterFromRow(row: unknown): BudgetCounter {
  const read = readRow(row);
  return {
    budgetId: read.text("budget_id"),
    subject: read.text("subject"),
    periodStart: read.integer("period_start"),
    unit: read.word("unit", holdUnits),
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

/** The hold in a row. */
export function holdFromRow(row: unknown): HoldRecord {
  const read = readRow(row);
  return {
    organizationId: read.text("organization_id"),
    stepId: read.text("step_id"),
    attempt: read.integer("attempt"),
    budgetId: read.text("budget_id"),
    subject: read.text("subject"),
    periodStart: read.integer("period_start"),
    unit: read.word("unit", holdUnits),
    amount: read.integer("amount"),
    settled: read.integerOrNull("settled"),
  };
}

const units: readonly BudgetUnit[] = ["usd", "tokens", "requests"];
const holdUnits: readonly HoldUnit[] = [...units, "steps", "requests_pace", "tokens_pace"];
const rateUnits: readonly RateLimit["unit"][] = ["requests", "tokens", "steps"];
const modes: readonly BudgetMode[] = ["hard", "soft"];
