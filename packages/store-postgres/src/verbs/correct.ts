import {
  type AppliedCorrection,
  applyCorrection,
  type CorrectionIntent,
} from "@tollgate/core/store";
import {
  correcting,
  correctionToRow,
  leafToRow,
  opening,
  readRow,
  stepsIn,
} from "@tollgate/store-sql";
import { postgresDialect } from "../database/postgres-dialect.ts";
import { playTransaction } from "../database/scripts.ts";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";
import { noSuchStep } from "./running-step.ts";

export async function correct(
  transaction: Transaction,
  intent: CorrectionIntent,
): Promise<boolean> {
  const { organizationId, stepId, correction } = intent;
  // The Step's row, so that corrections of one Step take turns.
  await transaction.get(locking.step, { organization_id: organizationId, id: stepId });
  const step = await playTransaction(
    transaction,
    stepsIn(postgresDialect).wholeStep(organizationId, stepId),
  );
  if (!step) throw noSuchStep();
  const known = step.attempts.flatMap(({ corrections = [] }) => corrections);
  if (known.some(({ id }) => id === correction.id)) return false;
  const applied = applyCorrection(step, correction);
  if (applied === null) return false;
  const heldBy = await moveCounters(transaction, intent, applied);
  const { attempt } = correction;
  const record = { organizationId, stepId, attempt, ...applied, heldBy };
  await transaction.run(correcting.insert, correctionToRow(record, await transaction.next()));
  await transaction.run(opening.insertLeaf, leafToRow(intent.leaf, await transaction.next()));
  return true;
}

/** Moves what is settled on the counters the attempt was charged to; returns the attempt that took those holds. */
async function moveCounters(
  transaction: Transaction,
  { organizationId, stepId, correction }: CorrectionIntent,
  { delta, heldSince }: AppliedCorrection,
): Promise<number | null> {
  const step = { organization_id: organizationId, step_id: stepId };
  const range = { ...step, attempt: correction.attempt, held_since: heldSince };
  const heldBy = readRow(await transaction.get(correcting.heldBy, range)).integerOrNull("attempt");
  for (const row of await transaction.all(correcting.holds, { ...step, held_by: heldBy })) {
    const hold = readRow(row);
    await transaction.run(correcting.move, {
      budget_id: hold.text("budget_id"),
      subject: hold.text("subject"),
      period_start: hold.integer("period_start"),
      delta: hold.text("unit") === "usd" ? delta.usd : delta.tokens,
    });
  }
  return heldBy;
}
