import type { Step } from "@tollgate/core/store";
import type { StepRow } from "./state.ts";

/** A Step with its corrections and with what its providers said, as long as that is kept. */
export function stepOfRow({ record: { step }, errors, corrections }: StepRow): Step {
  if (errors.length === 0 && corrections.length === 0) return step;
  const attempts = step.attempts.map((attempt) => {
    const error = errors.find((error) => error.attempt === attempt.number);
    const own = corrections.filter((correction) => correction.attempt === attempt.number);
    const { end } = attempt;
    return {
      ...attempt,
      end: error && end?.error ? { ...end, error: { ...end.error, message: error.message } } : end,
      ...(own.length > 0 && { corrections: own.map(({ correction }) => correction) }),
    };
  });
  return { ...step, attempts };
}
