import type { AttemptIntent, AttemptOpening, RefusedHold } from "@tollgate/core/store";
import {
  attemptEndOf,
  attemptToRow,
  decisionToRow,
  leafToRow,
  opening,
  settling,
} from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { type Charge, settleHolds, takeHolds } from "./holds.ts";
import {
  addCharge,
  findStep,
  type RunningStep,
  recordError,
  requireRunning,
} from "./running-step.ts";

export function openAttempt(transaction: Transaction, intent: AttemptIntent): AttemptOpening {
  const { organizationId, stepId, ended, attempt, decision } = intent;
  const step = findStep(transaction, organizationId, stepId);
  if (step.outcome !== null) return { opened: false, hold: null };
  if (attempt.number <= step.attempt) return { opened: true };
  requireRunning(step, ended);

  const spent = addCharge(step.carried, ended.charge);
  const refused = exchangeHolds(transaction, intent, spent);
  if (refused) return { opened: false, ...refused };
  writeAttempt(transaction, intent, step, spent);
  if (decision)
    transaction.run(
      opening.insertDecision,
      decisionToRow(step.owner, decision, transaction.next()),
    );
  transaction.run(opening.insertLeaf, leafToRow(intent.leaf, transaction.next()));
  return { opened: true };
}

/** Settles the running holds and takes the new ones, or changes nothing and returns the first that does not fit. */
function exchangeHolds(
  transaction: Transaction,
  { organizationId, stepId, attempt, holds }: AttemptIntent,
  spent: Charge,
): RefusedHold | null {
  if (holds === null) return null;
  return transaction.unless(() => {
    settleHolds(transaction, { organizationId, stepId }, spent);
    return takeHolds(transaction, { organizationId, stepId, attempt: attempt.number }, holds);
  });
}

function writeAttempt(
  transaction: Transaction,
  { organizationId, stepId, ended, attempt, holds }: AttemptIntent,
  step: RunningStep,
  spent: Charge,
): void {
  const end = attemptEndOf(ended);
  const earlier = [...step.earlierAttempts(), { ...step.runningAttempt(), end }];
  recordError(transaction, step, ended);
  const carried = holds === null ? spent : { usd: 0, tokens: 0 };
  transaction.run(settling.nextAttempt, {
    organization_id: organizationId,
    id: stepId,
    earlier_attempts: JSON.stringify(earlier),
    holds: holds === null ? step.holds : holds.length,
    carried_usd: carried.usd,
    carried_tokens: carried.tokens,
    ...attemptToRow(attempt),
  });
}
