import {
  type Attempt,
  type AttemptEnd,
  type AttemptIntent,
  type AttemptSettlement,
  GatewayError,
  type OpenAttemptResult,
  type Step,
} from "@tollgate/core/store";
import { type Decision, type Operation, unchanged } from "../change.ts";
import type { Charge, ErrorRecord, StepRecord } from "../records.ts";
import type { View } from "../view.ts";
import { CounterDraft, insertHolds, refusedHold, settleHolds } from "./hold.ts";

/**
 * Ends the running attempt and opens the next one. Holds are exchanged whole: where the new ones do not fit, the running
 * ones stay. Asked again for an attempt that was opened, it says so.
 * @throws GatewayError `step_not_found`, or `invalid_argument` for the end of an attempt that does not run
 */
export function openAttempt(view: View, intent: AttemptIntent): Decision<OpenAttemptResult> {
  const { organizationId, stepId, ended, attempt, holds, decision } = intent;
  const record = requireStep(view, organizationId, stepId);
  const { step } = record;
  if (step.outcome !== null) return unchanged({ opened: false, hold: null });
  if (attempt.number <= runningAttempt(step).number) return unchanged({ opened: true });
  const attempts = [...endRunningAttempt(step, ended), { ...attempt, end: null }];
  const spent = addCharge(record.carried, ended.charge);

  const holdOperations: Operation[] = [];
  if (holds) {
    const counters = new CounterDraft(view);
    holdOperations.push(...settleHolds(view, counters, record, spent));
    const refused = counters.take(holds);
    if (refused) return unchanged({ opened: false, ...refused });
    const holder = { organizationId, stepId, attempt: attempt.number };
    holdOperations.push(...insertHolds(holder, holds), ...counters.operations());
  }
  const row = {
    ...record,
    step: { ...step, attempts },
    holds: holds ? holds.length : record.holds,
    carried: holds ? { usd: 0, tokens: 0 } : spent,
  };
  const change: Operation[] = [{ write: "update step", row }, ...holdOperations];
  const error = errorRecord(step, ended);
  if (error) change.push({ write: "insert error", row: error });
  if (decision) change.push({ write: "insert decision", row: { owner: step, decision } });
  change.push({ write: "insert leaf", row: intent.leaf });
  return {
    result: { opened: true },
    change,
    resultIfOverLimit: (counter, left) => ({
      opened: false,
      ...refusedHold(holds ?? [], counter, left),
    }),
  };
}

/** A Step that must be there. */
export function requireStep(
  view: Pick<View, "step">,
  organizationId: string,
  stepId: string,
): StepRecord {
  const record = view.step(organizationId, stepId);
  if (!record) throw new GatewayError("step_not_found", "There is no such Step.");
  return record;
}

/** The Step's attempts with the running one ended. */
export function endRunningAttempt(step: Step, settlement: AttemptSettlement): readonly Attempt[] {
  const running = runningAttempt(step);
  if (running.number !== settlement.number)
    throw new GatewayError(
      "invalid_argument",
      `Attempt ${settlement.number} is not the one that runs.`,
    );
  return [...step.attempts.slice(0, -1), { ...running, end: attemptEndRecord(settlement) }];
}

function runningAttempt({ attempts }: Step): Attempt {
  const running = attempts.at(-1);
  if (!running) throw new TypeError("a Step has no attempt");
  return running;
}

/** An attempt's end for its record: its charge is on its holds, and what the provider said has a record of its own. */
export function attemptEndRecord(settlement: AttemptSettlement): AttemptEnd {
  const { number, charge, error, ...end } = settlement;
  const commitment = error && Buffer.from(error.contentCommitment).toString("hex");
  return { ...end, error: commitment === null ? null : { message: null, commitment } };
}

/** What the provider said of an attempt that ends, if it said something. */
export function errorRecord(
  { organizationId, sessionId, id }: Pick<Step, "organizationId" | "sessionId" | "id">,
  { number, error }: AttemptSettlement,
): ErrorRecord | null {
  return error && { organizationId, sessionId, stepId: id, attempt: number, ...error };
}

/** What several attempts were charged. */
export function addCharge(a: Charge, b: Charge): Charge {
  return { usd: a.usd + b.usd, tokens: a.tokens + b.tokens };
}
