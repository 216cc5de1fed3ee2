import {
  type AppliedCorrection,
  applyCorrection,
  type CorrectionIntent,
  GatewayError,
} from "@tollgate/core/store";
import { correcting, correctionToRow, leafToRow, opening, readRow } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { wholeStep } from "../repositories/corrected-steps.ts";

export function correct(transaction: Transaction, intent: CorrectionIntent): boolean {
  const { organizationId, stepId, correction } = intent;
  const step = wholeStep(transaction, organizationId, stepId);
  if (!step) throw new GatewayError("step_not_found", "There is no such Step.");
  const known = step.attempts.flatMap(({ corrections = [] }) => corrections);
  if (known.some(({ id }) => id === correction.id)) return false;
  const applied = applyCorrection(step, correction);
  if (applied === null) return false;
  const heldBy = moveCounters(transaction, intent, applied);
  const sequence = transaction.next();
  transaction.run(correcting.insert, correctionToRow(intent, { ...applied, heldBy, sequence }));
  transaction.run(opening.insertLeaf, leafToRow(intent.leaf, transaction.next()));
  return true;
}

/** Moves what is settled on the counters the attempt was charged to; returns the attempt that took those holds. */
function moveCounters(
  transaction: Transaction,
  { organizationId, stepId, correction }: CorrectionIntent,
  { delta, heldSince }: AppliedCorrection,
): number | null {
  const step = { organization_id: organizationId, step_id: stepId };
  const range = { ...step, attempt: correction.attempt, held_since: heldSince };
  const heldBy = readRow(transaction.get(correcting.heldBy, range)).integerOrNull("attempt");
  for (const row of transaction.all(correcting.holds, { ...step, held_by: heldBy })) {
    const hold = readRow(row);
    transaction.run(correcting.move, {
      budget_id: hold.text("budget_id"),
      subject: hold.text("subject"),
      period_start: hold.integer("period_start"),
      delta: hold.text("unit") === "usd" ? delta.usd : delta.tokens,
    });
  }
  return heldBy;
}
