import type { HoldUnit } from "@tollgate/core/store";
import {
  type Change,
  type DecisionRecord,
  type HoldRecord,
  isSameHold,
  type StepRecord,
} from "@tollgate/store-engine";
import {
  endColumns,
  insertInto,
  nextAttemptColumns,
  stepColumns,
  verdictOf,
} from "@tollgate/store-sql";

/** A hold as the row of its Step contains it. */
type EmbeddedHold = readonly [
  attempt: number,
  budgetId: string,
  subject: string,
  periodStart: number,
  unit: HoldUnit,
  amount: number,
  settled: number | null,
];

/** The columns of a hold `h` in the holds of a Step `s`. */
export const embeddedHoldColumns = `s.organization_id, s.id AS step_id, h.value ->> 0 AS attempt,
  h.value ->> 1 AS budget_id, h.value ->> 2 AS subject, h.value ->> 3 AS period_start,
  h.value ->> 4 AS unit, h.value ->> 5 AS amount, h.value ->> 6 AS settled`;

/** The holds in the rows of one Step, as the row of a Step contains them. */
export const embeddedHolds = `json_group_array(
  json_array(attempt, budget_id, subject, period_start, unit, amount, settled))`;

/** The parts of a permit in a Step's row: the columns `verdict`, `facts` and `policy_version` of a decision. */
export const permitParts = ["-> 0", "-> 1", "->> 2"] as const;

/**
 * The row of a Step also contains its holds, whether it is open, the permit that opened it and the Turn that it began, so
 * these need no separate rows and indexes. Removing a Step moves those that outlive it to their own tables.
 */
export const embeddingStatements = {
  insert: `${insertInto("steps", [
    ...stepColumns,
    ...["held", "renewal", "permit"],
  ])} ON CONFLICT DO NOTHING`,
  nextAttempt: update(nextAttemptColumns),
  end: update(endColumns),
  held: "SELECT held FROM steps WHERE organization_id = :organization_id AND id = :id",
  keepHolds: `INSERT INTO kept_holds SELECT ${embeddedHoldColumns}
    FROM steps s CROSS JOIN json_each(s.held) h
    WHERE s.organization_id = :organization_id AND s.id = :id`,
  keepPermit: `INSERT INTO decisions (organization_id, id, user_id, key_id, effect, at, verdict, facts,
      policy_version, sequence)
    SELECT organization_id, decision_id, user_id, key_id, 'permit', opened_at,
      ${permitParts.map((part) => `permit ${part}`).join(", ")}, sequence
    FROM steps WHERE organization_id = :organization_id AND id = :id AND permit IS NOT NULL
    ON CONFLICT DO NOTHING`,
  /** Names an index so that each named Step is looked up. */
  progress: `UPDATE steps INDEXED BY sqlite_autoindex_steps_1
    SET renewal = :renewal, output_tokens = g.value ->> 2
    FROM json_each(:steps) AS g
    WHERE process_id = :process_id AND outcome = 'open'
      AND organization_id = g.value ->> 0 AND steps.id = g.value ->> 1`,
  hasPermit: `SELECT id FROM steps
    WHERE organization_id = :organization_id AND id = :id AND permit IS NOT NULL`,
  keepTurn: `INSERT INTO kept_turns SELECT organization_id, id, session_id FROM steps
    WHERE organization_id = :organization_id AND id = :id AND turn_id = id
    ON CONFLICT DO NOTHING`,
} as const;

/** Leaves `held` unchanged if the parameter is null. */
function update(columns: readonly string[]): string {
  const changed = columns.map((column) => `${column} = :${column}`);
  return `UPDATE steps SET ${changed.join(", ")}, held = coalesce(:held, held)
    WHERE organization_id = :organization_id AND id = :id`;
}

/** Whether a decision is the permit that opened a Step and has no fields that the Step's row lacks. */
export function isEmbeddedPermit({ step }: StepRecord, { decision }: DecisionRecord): boolean {
  const { id, at, effect, firstDecisionId, refusal } = decision;
  return (
    id === step.id &&
    id === step.decisionId &&
    at === step.openedAt &&
    effect === "permit" &&
    firstDecisionId === null &&
    refusal === null
  );
}

/** The holds and the columns of a Step that a change opens. */
export function embeddedAtOpening(record: StepRecord, change: Change) {
  const holds = holdsAfter(change, () => []) ?? [];
  let permit: string | null = null;
  for (const { write, row } of change)
    if (write === "insert decision" && isEmbeddedPermit(record, row)) permit = permitToText(row);
  return { holds, columns: { held: holdsToText(holds), permit } };
}

function permitToText({ decision }: DecisionRecord): string {
  return JSON.stringify([verdictOf(decision), decision.facts, decision.policyVersion]);
}

/** The holds and the columns of a Step after a change. `before` returns its holds before the change. */
export function embeddedAfter(change: Change, before: () => readonly HoldRecord[]) {
  const holds = holdsAfter(change, before);
  return { holds, columns: { held: holds && holdsToText(holds) } };
}

/** Serializes the holds of a Step. Null for none. */
function holdsToText(holds: readonly HoldRecord[]): string | null {
  if (holds.length === 0) return null;
  const held = holds.map((hold): EmbeddedHold => {
    const { attempt, budgetId, subject, periodStart, unit, amount, settled } = hold;
    return [attempt, budgetId, subject, periodStart, unit, amount, settled];
  });
  return JSON.stringify(held);
}

/** Parses the holds of a Step's row. */
export function holdsFromText(
  { organizationId, stepId }: Pick<HoldRecord, "organizationId" | "stepId">,
  text: string | null,
): readonly HoldRecord[] {
  if (text === null) return [];
  const held: readonly EmbeddedHold[] = JSON.parse(text);
  return held.map(([attempt, budgetId, subject, periodStart, unit, amount, settled]) => ({
    organizationId,
    stepId,
    attempt,
    budgetId,
    subject,
    periodStart,
    unit,
    amount,
    settled,
  }));
}

/** The holds of a Step after a change. Null if the change moves no hold. */
function holdsAfter(
  change: Change,
  before: () => readonly HoldRecord[],
): readonly HoldRecord[] | null {
  const settled: HoldRecord[] = [];
  const taken: HoldRecord[] = [];
  for (const { write, row } of change) {
    if (write === "settle hold") settled.push(row);
    if (write === "insert hold") taken.push(row);
  }
  if (settled.length === 0 && taken.length === 0) return null;
  const kept = before().map((hold) => settled.find((other) => isSameHold(other, hold)) ?? hold);
  return [...kept, ...taken];
}
