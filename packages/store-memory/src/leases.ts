import type { LapsedStep, LeaseRenewal } from "@tollgate/core/store";
import { stepOfRow } from "./shown-step.ts";
import type { State, StepRow } from "./state.ts";

export function renewLease(state: State, lease: LeaseRenewal): void {
  const { processId, renewal, until, steps } = lease;
  // A renewal that was overtaken by a later one has nothing to say any more.
  if ((state.leases.get(processId)?.renewal ?? 0) > renewal) return;
  state.leases.set(processId, { renewal, until });
  const progress = new Map(
    steps.map(({ organizationId, stepId, outputTokens }) => [
      keyOf(organizationId, stepId),
      outputTokens,
    ]),
  );
  for (const row of state.openSteps.all()) {
    const outputTokens = progress.get(keyOf(row.organizationId, row.id));
    if (row.record.processId !== processId || outputTokens === undefined) continue;
    row.outputTokens = outputTokens;
    row.lastRenewal = renewal;
  }
}

function keyOf(organizationId: string, stepId: string): string {
  return JSON.stringify([organizationId, stepId]);
}

export function lapsedSteps(
  state: State,
  { at, limit }: { readonly at: number; readonly limit: number },
): readonly LapsedStep[] {
  const lapsed = state.openSteps
    .all()
    .filter((row) => isLapsed(state, row, at))
    .slice(0, limit);
  return lapsed.map((row) => ({
    step: stepOfRow(row),
    salt: Uint8Array.from(state.salts.get(row.organizationId) ?? []),
    outputTokens: row.outputTokens,
  }));
}

function isLapsed(state: State, row: StepRow, at: number): boolean {
  const lease = state.leases.get(row.record.processId);
  if (!lease || lease.until <= at) return true;
  return lease.renewal > row.renewal && row.lastRenewal !== lease.renewal;
}
