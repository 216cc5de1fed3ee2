import { applyCorrection, type CorrectionIntent, type Step } from "@tollgate/core/store";
import { type Decision, type Operation, unchanged } from "../change.ts";
import type { StepRecord } from "../records.ts";
import type { View } from "../view.ts";
import { requireStep } from "./attempt.ts";
import { CounterDraft } from "./hold.ts";

/**
 * Adds a correction to an attempt of a settled Step, and moves what is settled on the counters it was charged to: those
 * of the latest holds up to it that were taken for an attempt of its decision.
 * @throws GatewayError `step_not_found`, or `invalid_argument` as `applyCorrection` does
 */
export function correct(view: View, intent: CorrectionIntent): Decision<boolean> {
  const { organizationId, stepId, leaf, correction: draft } = intent;
  const record = requireStep(view, organizationId, stepId);
  const known = view.corrections(organizationId, stepId);
  if (known.some(({ correction }) => correction.id === draft.id)) return unchanged(false);
  const applied = applyCorrection(withCorrections(record, known), draft);
  if (applied === null) return unchanged(false);
  const { correction, delta, heldSince } = applied;

  const holds = view.holds(record);
  const taken = holds
    .map((hold) => hold.attempt)
    .filter((attempt) => attempt >= heldSince && attempt <= draft.attempt);
  const heldBy = taken.length === 0 ? null : Math.max(...taken);
  const counters = new CounterDraft(view);
  for (const hold of holds)
    if (hold.attempt === heldBy && (hold.unit === "usd" || hold.unit === "tokens"))
      counters.correct(hold, delta[hold.unit]);
  const row = { organizationId, stepId, attempt: draft.attempt, correction, delta, heldBy };
  const change: Operation[] = [
    { write: "insert correction", row },
    ...counters.operations(),
    { write: "insert leaf", row: leaf },
  ];
  return { result: true, change };
}

/** The Step with the corrections of its attempts. */
function withCorrections({ step }: StepRecord, known: ReturnType<View["corrections"]>): Step {
  const attempts = step.attempts.map((attempt) => {
    const own = known.filter((other) => other.attempt === attempt.number);
    return { ...attempt, corrections: own.map(({ correction }) => correction) };
  });
  return { ...step, attempts };
}
