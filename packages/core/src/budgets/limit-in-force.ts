import type { RaisedBudget } from "./budget-cache.ts";

/** A budget's limit at a time: its own, plus the raises in force. */
export function limitInForce({ limit, unit, raises }: RaisedBudget, at: number): number {
  const raised = raises.reduce(
    (sum, raise) => (raise.until > at && raise.unit === unit ? sum + raise.amount : sum),
    limit,
  );
  return Math.min(raised, Number.MAX_SAFE_INTEGER);
}
