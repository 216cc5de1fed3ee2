import type { BudgetCounter, CounterDrift, Reconciliation } from "@tollgate/core/store";
import type { HoldRecord } from "@tollgate/store-engine";
import type { State, StepRow } from "./state.ts";

type LedgerBalance = CounterDrift["ledger"];

export function reconcile(state: State, limit: number): Reconciliation {
  const ledger = ledgerOf(state);
  // A pace follows the time, and no ledger.
  const counters = state.counters.all().filter(({ unit }) => !unit.endsWith("_pace"));
  const drift = counters
    .map((counter) => ({ ...counter, ledger: ledger.get(keyOf(counter)) ?? zeroBalance }))
    .filter(
      (counter) =>
        counter.settled !== counter.ledger.settled || counter.held !== counter.ledger.held,
    );
  return { counters: counters.length, drift: drift.sort(compareDrift).slice(0, limit) };
}

const zeroBalance: LedgerBalance = { settled: 0, held: 0 };

/** Where every counter should stand. */
function ledgerOf({ stepsWithHolds }: State): ReadonlyMap<string, LedgerBalance> {
  const ledger = new Map<string, LedgerBalance>();
  for (const row of stepsWithHolds)
    for (const hold of row.holds) {
      const before = ledger.get(keyOf(hold)) ?? zeroBalance;
      const settled = before.settled + (hold.settled ?? 0) + correctionOf(row, hold);
      ledger.set(keyOf(hold), {
        settled: Math.min(settled, Number.MAX_SAFE_INTEGER),
        held: before.held + (hold.settled === null ? hold.amount : 0),
      });
    }
  return ledger;
}

/** What corrections added to a hold since it was settled. */
function correctionOf({ corrections }: StepRow, { attempt, unit }: HoldRecord): number {
  if (unit !== "usd" && unit !== "tokens") return 0;
  const own = corrections.filter(({ heldBy }) => heldBy === attempt);
  return own.reduce((sum, { delta }) => sum + delta[unit], 0);
}

function keyOf({
  budgetId,
  subject,
  periodStart,
}: Pick<BudgetCounter, "budgetId" | "subject" | "periodStart">): string {
  return JSON.stringify([budgetId, subject, periodStart]);
}

function compareDrift(a: CounterDrift, b: CounterDrift): number {
  return keyOf(a) < keyOf(b) ? -1 : 1;
}
