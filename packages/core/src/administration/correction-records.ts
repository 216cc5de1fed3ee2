import type { AttemptFigures, Correction } from "../domain/correction.ts";
import type { Usage } from "../domain/usage.ts";
import { toIso } from "./tenant.ts";

/** An attempt's tokens and what it cost in nanodollars, null where no price is known. */
export interface FiguresRecord extends Usage {
  readonly costNanoUsd: number | null;
}

/** A correction of one attempt: its figures from then on, who gave them and why. */
export interface CorrectionRecord extends FiguresRecord {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  /** Null when none was given. */
  readonly actor: string | null;
  readonly reason: string;
}

export function toCorrectionRecord(correction: Correction): CorrectionRecord {
  const { id, at, actor, reason } = correction;
  return { id, at: toIso(at), actor, reason, ...toFiguresRecord(correction) };
}

export function toFiguresRecord({ usage, costNanoUsd }: AttemptFigures): FiguresRecord {
  return { ...usage, costNanoUsd };
}
