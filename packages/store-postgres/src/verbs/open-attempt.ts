import type { AttemptIntent, AttemptOpening, RefusedHold } from "@tollgate/core/store";
import { attemptEndOf, errorOf } from "@tollgate/store-engine";
import {
  attemptToRow,
  decisionToRow,
  errorToRow,
  insertError,
  leafToRow,
  opening,
  settling,
} from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { type Charge, exchangeHolds } from "./holds.ts";
import { addCharge, findStep, type RunningStep, requireRunning } from "./running-step.ts";

export async function openAttempt(
  transaction: Transaction,
  intent: AttemptIntent,
): Promise<AttemptOpening> {
  const { organizationId, stepId, ended, attempt, decision } = intent;
  const step = await findStep(transaction, organizationId, stepId);
  if (step.outcome !== null) return { opened: false, hold: null };
  if (attempt.number <= step.attempt) return { opened: true };
  requireRunning(step, ended);

  const spent = addCharge(step.carried, ended.charge);
  const refused = await changeHolds(transaction, intent, spent);
  if (refused) return { opened: false, ...refused };
  await writeAttempt(transaction, intent, step, spent);
  if (decision)
    await transaction.run(
      opening.insertDecision,
      decisionToRow(step.owner, decision, await transaction.next()),
    );
  await transaction.run(opening.insertLeaf, leafToRow(intent.leaf, await transaction.next()));
  return { opened: true };
}

/** Changes nothing where it returns the first hold that does not fit. */
async function changeHolds(
  transaction: Transaction,
  { organizationId, stepId, attempt, holds }: AttemptIntent,
  spent: Charge,
): Promise<RefusedHold | null> {
  if (holds === null) return null;
  const owner = { organizationId, stepId, attempt: attempt.number };
  return transaction.unless(() => exchangeHolds(transaction, owner, { spent, holds }));
}

async function writeAttempt(
  transaction: Transaction,
  { organizationId, stepId, ended, attempt, holds }: AttemptIntent,
  step: RunningStep,
  spent: Charge,
): Promise<void> {
  const end = attemptEndOf(ended);
  const earlier = [...step.earlierAttempts(), { ...step.runningAttempt(), end }];
  const carried = holds === null ? spent : { usd: 0, tokens: 0 };
  const error = errorOf({ organizationId, sessionId: step.sessionId, id: stepId }, ended);
  if (error) await transaction.run(insertError, errorToRow(error));
  await transaction.run(settling.nextAttempt, {
    organization_id: organizationId,
    id: stepId,
    earlier_attempts: JSON.stringify(earlier),
    holds: holds === null ? step.holds : holds.length,
    carried_usd: carried.usd,
    carried_tokens: carried.tokens,
    ...attemptToRow(attempt),
  });
}
