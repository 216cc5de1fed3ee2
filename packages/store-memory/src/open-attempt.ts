import {
  type Attempt,
  type AttemptError,
  type AttemptIntent,
  type AttemptOpening,
  type AttemptSettlement,
  type CommittedContent,
  GatewayError,
} from "@tollgate/core/store";
import type { State, StepRow } from "./state.ts";
import { type Charge, heldFor, settleHolds } from "./step-holds.ts";

export function openAttempt(state: State, intent: AttemptIntent): AttemptOpening {
  const { organizationId, stepId, ended, attempt, holds, decision } = intent;
  const row = stepRow(state, organizationId, stepId);
  if (row.step.settledAt !== null) return { opened: false, hold: null };
  if (row.step.attempts.some(({ number }) => number === attempt.number)) return { opened: true };
  const attempts = [...endRunning(row, ended), { ...attempt, end: null }];
  const spent = addCharge(row.carried, ended.charge);

  const draft = state.counters.draft();
  if (holds) {
    const settled = settleHolds(draft, row.holds, spent);
    const refused = draft.take(holds);
    if (refused) return { opened: false, ...refused };
    row.holds = [...settled, ...heldFor(attempt.number, holds)];
    if (holds.length > 0) state.holders.add(row);
  }
  draft.commit();
  row.carried = holds ? { usd: 0, tokens: 0 } : spent;
  row.step = { ...row.step, attempts };
  row.session.holdsContent ||= ended.error !== null;
  const { userId, keyId } = row.step;
  if (decision)
    state.decisions.insert({ id: decision.id, organizationId, userId, keyId, decision });
  state.leaves.insert(intent.leaf);
  return { opened: true };
}

export function stepRow(state: State, organizationId: string, stepId: string): StepRow {
  const row = state.steps.get(organizationId, stepId);
  if (!row) throw new GatewayError("step_not_found", "There is no such Step.");
  return row;
}

/** The Step's attempts with the running one ended. */
export function endRunning(row: StepRow, settlement: AttemptSettlement): readonly Attempt[] {
  const { number, charge: _, error, ...end } = settlement;
  const running = row.step.attempts.at(-1);
  if (running?.number !== number)
    throw new GatewayError("invalid_argument", `Attempt ${number} is not the one that runs.`);
  const ended = { ...running, end: { ...end, error: error && errorOf(error) } };
  return [...row.step.attempts.slice(0, -1), ended];
}

function errorOf({ content, contentCommitment }: CommittedContent): AttemptError {
  return {
    message: content && Buffer.from(content).toString(),
    commitment: Buffer.from(contentCommitment).toString("hex"),
  };
}

export function addCharge(a: Charge, b: Charge): Charge {
  return { usd: a.usd + b.usd, tokens: a.tokens + b.tokens };
}
