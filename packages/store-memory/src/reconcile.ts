import type { BudgetCounter, CounterDrift, Reconciliation } from "@tollgate/core/store";
import type { State } from "./state.ts";

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
  for (const { hold, settled, corrected } of [...holders].flatMap(({ holds }) => holds)) {
    const before = ledger.get(nameOf(hold)) ?? nothing;
    ledger.set(nameOf(hold), {
      settled: Math.min(before.settled + (settled ?? 0) + corrected, Number.MAX_SAFE_INTEGER),
      held: before.held + (settled === null ? hold.amount : 0),
    });
  }
  return ledger;
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
