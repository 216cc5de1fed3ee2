import type { Store } from "@tollgate/core/store";
import { everyRow, type StoreDump } from "@tollgate/testing";

/** Reads all records except Sessions, activity and hourly sums. */
export async function readLedger(
  store: Store,
  { organizationId, budgetId }: { readonly organizationId: string; readonly budgetId: string },
): Promise<StoreDump> {
  return {
    at: 0,
    steps: await everyRow((paging) => store.steps.list({ organizationId }, paging)),
    decisions: await everyRow((paging) => store.decisions.list({ organizationId }, paging)),
    leaves: await everyRow((paging) => store.evidence.list({ organizationId }, paging)),
    counters: await everyRow((paging) => store.budgets.counters({ budgetId }, paging)),
    lapsedSteps: [],
    sessions: [],
    activity: [],
    usage: [],
  };
}

/** Of the decisions whose complete answers a client got, those without a completed Step. */
export function lostAnswers(
  { steps }: Pick<StoreDump, "steps">,
  acknowledged: readonly string[],
): readonly string[] {
  const completed = new Set<string>();
  for (const { outcome, decisionId } of steps)
    if (outcome === "completed") completed.add(decisionId);
  return acknowledged.filter((decisionId) => !completed.has(decisionId));
}
