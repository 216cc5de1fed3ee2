import type { Change, HoldRecord, Operation, StepRecord } from "@tollgate/store-engine";
import { decisionToRow, insertInto, type SqlParameters, stepColumns } from "@tollgate/store-sql";
import { embeddedHoldColumns, holdsAfter, holdsToText } from "./held.ts";

/**
 * What the row of a Step carries besides: its holds, that it is open, and the permit that opened it, so that none of them
 * needs a row and an index of its own. What outlives the Step moves when the Step goes.
 */
export const embeddingStatements = {
  insert: `${insertInto("steps", [
    ...stepColumns,
    ...["held", "renewal", "verdict", "facts", "policy_version"],
  ])} ON CONFLICT DO NOTHING`,
  nextAttempt: update([
    ...["gateway", "vendor", "model", "connection", "attempt", "attempt_start"],
    ...["earlier_attempts", "holds", "carried_usd", "carried_tokens"],
  ]),
  end: update([
    ...["settled_at", "outcome", "reason", "finish_reason", "reply_head", "host", "attempt_end"],
  ]),
  held: "SELECT held FROM steps WHERE organization_id = :organization_id AND id = :id",
  keepHolds: `INSERT INTO kept_holds SELECT ${embeddedHoldColumns}
    FROM steps s CROSS JOIN json_each(s.held) h
    WHERE s.organization_id = :organization_id AND s.id = :id`,
  keepPermit: `INSERT INTO decisions (organization_id, id, user_id, key_id, effect, at, verdict, facts,
      policy_version, sequence)
    SELECT organization_id, decision_id, user_id, key_id, 'permit', opened_at, verdict, facts,
      policy_version, sequence
    FROM steps WHERE organization_id = :organization_id AND id = :id AND verdict IS NOT NULL
    ON CONFLICT DO NOTHING`,
  progress: `UPDATE steps SET renewal = :renewal, output_tokens = :output_tokens
    WHERE process_id = :process_id AND id = :step_id AND organization_id = :organization_id
      AND outcome = 'open'`,
  hasPermit: `SELECT id FROM steps
    WHERE organization_id = :organization_id AND decision_id = :id AND verdict IS NOT NULL`,
} as const;

/** `held` stays where it is given none. */
function update(columns: readonly string[]): string {
  const changed = columns.map((column) => `${column} = :${column}`);
  return `UPDATE steps SET ${changed.join(", ")}, held = coalesce(:held, held)
    WHERE organization_id = :organization_id AND id = :id`;
}

type RecordedDecision = Extract<Operation, { readonly write: "insert decision" }>["row"];

/** Whether a decision is the permit that a Step opens with, and says nothing that the Step could not carry. */
export function isEmbeddedPermit({ step }: StepRecord, { decision }: RecordedDecision): boolean {
  const { id, at, effect, firstDecisionId, refusal } = decision;
  return (
    id === step.decisionId &&
    at === step.openedAt &&
    effect === "permit" &&
    firstDecisionId === null &&
    refusal === null
  );
}

/** What a Step carries that opens by a change. */
export function embeddedAtOpening(record: StepRecord, change: Change) {
  const holds = holdsAfter(change, () => []) ?? [];
  let permit: SqlParameters = {};
  for (const { write, row } of change)
    if (write === "insert decision" && isEmbeddedPermit(record, row))
      permit = decisionToRow(row.owner, row.decision, 0);
  const { verdict = null, facts = null, policy_version = null } = permit;
  return { holds, columns: { held: holdsToText(holds), verdict, facts, policy_version } };
}

/** What a Step carries once a change of it is written; `before` are its holds. */
export function embeddedAfter(change: Change, before: () => readonly HoldRecord[]) {
  const holds = holdsAfter(change, before);
  return { holds, columns: { held: holds && holdsToText(holds) } };
}
