import type { BudgetCounter, CounterDrift, Reconciliation } from "@tollgate/core/store";
import type { HoldRecord } from "@tollgate/store-engine";
import type { State, StepRow } from "./state.ts";

type Standing = CounterDrift["ledger"];

export function reconcile(state: State, limit: number): Reconciliation {
  const ledger = ledgerOf(state);
  const counters = state.counters.all();
  const drift = counters
    .map((counter) => ({ ...counter, ledger: ledger.get(nameOf(counter)) ?? nothing }))
    .filter((one) => one.settled !== one.ledger.settled || one.held !== one.ledger.held);
  return { counters: counters.length, drift: drift.sort(byName).slice(0, limit) };
}

const nothing: Standing = { settled: 0, held: 0 };

/** Where every counter should stand. */
function ledgerOf({ holders }: State): ReadonlyMap<string, Standing> {
  const ledger = new Map<string, Standing>();
  for (const row of holders)
    for (const hold of row.holds) {
      const before = ledger.get(nameOf(hold)) ?? nothing;
      const settled = before.settled + (hold.settled ?? 0) + correctionOf(row, hold);
      ledger.set(nameOf(hold), {
        settled: Math.min(settled, Number.MAX_SAFE_INTEGER),
        held: before.held + (hold.settled === null ? hold.amount : 0),
      });
    }
  return ledger;
}

/** What corrections added to a hold since it was settled. */
function correctionOf({ corrections }: StepRow, { attempt, unit }: HoldRecord): number {
  if (unit === "requests") return 0;
  const own = corrections.filter(({ heldBy }) => heldBy === attempt);
  return own.reduce((sum, { delta }) => sum + delta[unit], 0);
}

function nameOf({
  budgetId,
  subject,
  periodStart,
}: Pick<BudgetCounter, "budgetId" | "subject" | "periodStart">): string {
  return JSON.stringify([budgetId, subject, periodStart]);
}

function byName(a: CounterDrift, b: CounterDrift): number {
  return nameOf(a) < nameOf(b) ? -1 : 1;
}
