import type { Usage } from "./usage.ts";

/** An attempt's usage and its cost in nanodollars; null if no price is known. */
export interface AttemptFigures {
  readonly usage: Usage;
  readonly costNanoUsd: number | null;
}

/** A correction of one attempt's figures. The original usage and billing record stays as it is. */
export interface Correction extends AttemptFigures {
  readonly id: string;
  readonly at: number;
  readonly actor: string | null;
  readonly reason: string;
}

/** A requested correction. A figure that is null stays as it is. */
export interface CorrectionDraft extends Omit<Correction, "usage"> {
  readonly attempt: number;
  readonly usage: Usage | null;
  /** The number of earlier corrections it was computed from. If there are more by now, it isn't applied. */
  readonly after?: number;
}
