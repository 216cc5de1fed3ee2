import { applyCorrection, type CorrectionIntent } from "@tollgate/core/store";
import { stepRow } from "./open-attempt.ts";
import type { State } from "./state.ts";
import { correctHolds } from "./step-holds.ts";

export function correct(state: State, intent: CorrectionIntent): boolean {
  const { organizationId, stepId, leaf, correction: draft } = intent;
  const row = stepRow(state, organizationId, stepId);
  const { attempts } = row.step;
  if (attempts.some(({ corrections = [] }) => corrections.some(({ id }) => id === draft.id)))
    return false;
  const applied = applyCorrection(row.step, draft);
  if (applied === null) return false;
  const { correction, delta, heldSince } = applied;

  const counters = state.counters.draft();
  row.holds = correctHolds(counters, row.holds, { attempt: draft.attempt, heldSince, delta });
  counters.commit();
  row.step = {
    ...row.step,
    attempts: attempts.map((attempt) =>
      attempt.number === draft.attempt
        ? { ...attempt, corrections: [...(attempt.corrections ?? []), correction] }
        : attempt,
    ),
  };
  state.leaves.insert(leaf);
  return true;
}
