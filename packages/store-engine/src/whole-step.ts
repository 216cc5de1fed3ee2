import type { Attempt, Correction, Step, StepContents, StepPart } from "@tollgate/core/store";

/** A correction, and the number of the attempt that it corrects. */
export interface AttemptCorrection {
  readonly attempt: number;
  readonly correction: Correction;
}

/** A Step with its corrections. Those of one attempt stay in the given order. */
export function withCorrections<
  One extends { readonly attempts: readonly Pick<Attempt, "number" | "corrections">[] },
>(step: One, corrections: readonly AttemptCorrection[]): One {
  if (corrections.length === 0) return step;
  const attempts = step.attempts.map((attempt) => {
    const own = corrections.filter((other) => other.attempt === attempt.number);
    return own.length === 0
      ? attempt
      : { ...attempt, corrections: own.map(({ correction }) => correction) };
  });
  return { ...step, attempts };
}

/** The text of an attempt's provider error. Null if only its commitment is kept. */
export interface AttemptMessage {
  readonly attempt: number;
  readonly message: string | null;
}

/** A Step with its providers' error messages. */
export function withErrors(step: Step, messages: readonly AttemptMessage[]): Step {
  if (messages.length === 0) return step;
  const attempts = step.attempts.map((attempt) => {
    const { number, end } = attempt;
    const found = messages.find((other) => other.attempt === number);
    if (!found || !end?.error) return attempt;
    return { ...attempt, end: { ...end, error: { ...end.error, message: found.message } } };
  });
  return { ...step, attempts };
}

const stepParts: readonly StepPart[] = ["instructions", "request", "reply", "reasoning"];

/** The contents of a Step, by the kinds of its parts. The content of a part is null if only its commitment is kept. */
export function stepContents(parts: ReadonlyMap<string, Uint8Array | null>): StepContents {
  return {
    instructions: parts.get("instructions") ?? null,
    request: parts.get("request") ?? null,
    reply: parts.get("reply") ?? null,
    reasoning: parts.get("reasoning") ?? null,
    withheld: stepParts.filter((name) => parts.get(name) === null),
  };
}
