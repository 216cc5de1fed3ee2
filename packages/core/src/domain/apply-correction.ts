import { invalidArgument } from "../errors/gateway-error.ts";
import type { AttemptFigures, Correction, CorrectionDraft } from "./correction.ts";
import type { Attempt, Step } from "./step.ts";

/** The effect of a correction: the record to add, and the change to the counters that its attempt was charged to. */
export interface AppliedCorrection {
  readonly correction: Correction;
  /** Nanodollars and tokens, negative if less was used than charged. */
  readonly delta: { readonly usd: number; readonly tokens: number };
  /** The first attempt under the same decision. Attempts under one decision share their holds. */
  readonly heldSince: number;
}

/** An attempt's figures after its last correction; null while it is running. */
export function figuresOf(attempt: Pick<Attempt, "end" | "corrections">): AttemptFigures | null {
  return attempt.corrections?.at(-1) ?? attempt.end;
}

const maxCorrections = 100;

/**
 * Applies a correction to a settled Step and its earlier corrections. Null if it was computed from other earlier ones.
 * @throws GatewayError `invalid_argument`
 */
export function applyCorrection(
  { outcome, attempts }: Pick<Step, "outcome" | "attempts">,
  { attempt: number, after, ...draft }: CorrectionDraft,
): AppliedCorrection | null {
  if (outcome === null)
    throw invalidArgument("id", "The Step is still open. Correct it once it has ended.");
  const attempt = attempts.find((candidate) => candidate.number === number);
  const before = attempt && figuresOf(attempt);
  if (!before)
    throw invalidArgument(
      "attempt",
      `\`attempt\` must be an attempt of the Step: it has no attempt ${number}.`,
    );
  const made = attempt.corrections?.length ?? 0;
  if (made !== (after ?? made)) return null;
  if (made >= maxCorrections)
    throw invalidArgument(
      "attempt",
      `\`attempt\` ${number} already has ${maxCorrections} corrections, the maximum.`,
    );
  const usage = draft.usage ?? before.usage;
  const costNanoUsd = draft.costNanoUsd ?? before.costNanoUsd;
  return {
    correction: { ...draft, usage, costNanoUsd },
    delta: {
      usd: (costNanoUsd ?? 0) - (before.costNanoUsd ?? 0),
      tokens: usage.totalTokens - before.usage.totalTokens,
    },
    heldSince:
      attempts.find(({ decisionId }) => decisionId === attempt.decisionId)?.number ?? number,
  };
}
