import type { Store, StorePage, StorePaging } from "@tollgate/core/store";
import type { StoreDump } from "@tollgate/testing";

/** Reads all records except Sessions and activity. */
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
  };
}

async function everyRow<Row>(
  read: (paging: StorePaging) => Promise<StorePage<Row>>,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  let cursor: string | null = null;
  do {
    const page: StorePage<Row> = await read({ cursor, limit: 1_000 });
    rows.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return rows;
}
