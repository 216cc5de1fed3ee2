import type { StepSweep, Swept } from "@tollgate/core/store";
import type { State, StepRow } from "./state.ts";

/** Removes the oldest settled Steps; their Sessions go on without them. */
export function sweepSteps(state: State, { at, keep, limit, leaf }: StepSweep): Swept {
  const old: StepRow[] = [];
  for (const row of state.steps.rows()) {
    if (old.length === limit || row.record.step.openedAt >= at - keep) break;
    if (row.record.step.settledAt !== null) old.push(row);
  }
  for (const row of old) state.steps.remove(row);
  const counts = Map.groupBy(old, (row) => row.organizationId);
  for (const [organizationId, removed] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
    state.leaves.insert(leaf({ organizationId, count: removed.length }));
  return { removed: old.length, more: old.length === limit };
}
