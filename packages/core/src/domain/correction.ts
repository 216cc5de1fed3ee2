import type { Usage } from "./usage.ts";

/** What an attempt used, and what it cost: nanodollars, null where no price is known. */
export interface AttemptFigures {
  readonly usage: Usage;
  readonly costNanoUsd: number | null;
}

/** A later word on one attempt's figures. The usage and billing record it corrects stays as it was written. */
export interface Correction extends AttemptFigures {
  readonly id: string;
  readonly at: number;
  readonly actor: string | null;
  readonly reason: string;
}

/** A correction as it is asked for: a figure that is null stays as it stands. */
export interface CorrectionDraft extends Omit<Correction, "usage"> {
  readonly attempt: number;
  readonly usage: Usage | null;
  /** How many corrections of the attempt it was computed from: where there are others by now, it is not made. */
  readonly after?: number;
}
