import type { HoldUnit } from "@tollgate/core/store";
import type { Change, HoldRecord } from "@tollgate/store-engine";

/** A hold in the row of its Step. */
type EmbeddedHold = readonly [
  attempt: number,
  budgetId: string,
  subject: string,
  periodStart: number,
  unit: HoldUnit,
  amount: number,
  settled: number | null,
];

/** The columns of a hold, of `h` in what is held by the Step `s`. */
export const embeddedHoldColumns = `s.organization_id, s.id AS step_id, h.value ->> 0 AS attempt,
  h.value ->> 1 AS budget_id, h.value ->> 2 AS subject, h.value ->> 3 AS period_start,
  h.value ->> 4 AS unit, h.value ->> 5 AS amount, h.value ->> 6 AS settled`;

/** The holds of a Step as its row has them; null for none. */
export function holdsToText(holds: readonly HoldRecord[]): string | null {
  if (holds.length === 0) return null;
  const held = holds.map((hold): EmbeddedHold => {
    const { attempt, budgetId, subject, periodStart, unit, amount, settled } = hold;
    return [attempt, budgetId, subject, periodStart, unit, amount, settled];
  });
  return JSON.stringify(held);
}

/** The holds that a Step's row has. */
export function holdsFromText(
  { organizationId, stepId }: Pick<HoldRecord, "organizationId" | "stepId">,
  text: string | null,
): readonly HoldRecord[] {
  if (text === null) return [];
  const held: readonly EmbeddedHold[] = JSON.parse(text);
  return held.map(([attempt, budgetId, subject, periodStart, unit, amount, settled]) => ({
    organizationId,
    stepId,
    attempt,
    budgetId,
    subject,
    periodStart,
    unit,
    amount,
    settled,
  }));
}

/** The holds of a Step as a change of it leaves them; null where it changes none. */
export function holdsAfter(
  change: Change,
  before: () => readonly HoldRecord[],
): readonly HoldRecord[] | null {
  const settled: HoldRecord[] = [];
  const taken: HoldRecord[] = [];
  for (const { write, row } of change) {
    if (write === "settle hold") settled.push(row);
    if (write === "insert hold") taken.push(row);
  }
  if (settled.length === 0 && taken.length === 0) return null;
  const kept = before().map((hold) => settled.find((other) => isSameHold(other, hold)) ?? hold);
  return [...kept, ...taken];
}

function isSameHold(a: HoldRecord, b: HoldRecord): boolean {
  return (
    a.attempt === b.attempt &&
    a.budgetId === b.budgetId &&
    a.subject === b.subject &&
    a.periodStart === b.periodStart
  );
}
