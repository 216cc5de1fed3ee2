import type { Hold } from "@tollgate/core/store";
import type { CounterDraft } from "./counters.ts";
import type { HoldRow } from "./state.ts";

/** What was spent: nanodollars and tokens. */
export interface Charge {
  readonly usd: number;
  readonly tokens: number;
}

/** Holds as an attempt takes them. */
export function heldFor(attempt: number, holds: readonly Hold[]): readonly HoldRow[] {
  return holds.map((hold) => ({ attempt, hold, settled: null, corrected: 0 }));
}

/** A Step's holds with the running ones turned into what was spent, on their counters too. */
export function settleHolds(
  draft: CounterDraft,
  rows: readonly HoldRow[],
  charge: Charge,
): readonly HoldRow[] {
  return rows.map((row) => {
    const { hold } = row;
    if (row.settled !== null) return row;
    const settled = hold.unit === "requests" ? hold.amount : charge[hold.unit];
    draft.settle(hold, settled);
    return { ...row, settled };
  });
}

/** A Step's holds with those corrected that an attempt was charged to: the latest taken from `heldSince` up to it. */
export function correctHolds(
  draft: CounterDraft,
  rows: readonly HoldRow[],
  {
    attempt,
    heldSince,
    delta,
  }: { readonly attempt: number; readonly heldSince: number; readonly delta: Charge },
): readonly HoldRow[] {
  const taken = rows.map((row) => row.attempt).filter((at) => at >= heldSince && at <= attempt);
  const charged = Math.max(...taken);
  return rows.map((row) => {
    const { hold } = row;
    if (row.attempt !== charged || hold.unit === "requests") return row;
    draft.correct(hold, delta[hold.unit]);
    return { ...row, corrected: row.corrected + delta[hold.unit] };
  });
}
