import type { EvidenceLeaf } from "@tollgate/core/store";
import type { CounterState } from "./audit-counters.ts";

/** How long a request may have been under way when it was refused, in milliseconds. */
const maxRequestMs = 5_000;

/** The limit of every key, and the amount that one request holds. */
export interface Allowance {
  readonly limit: number;
  readonly amount: number;
}

/** The number of holds that were taken although they did not fit. */
export function countOverspends(audit: readonly CounterState[], limit: number): number {
  return audit.filter(({ isHold, settled, held }) => isHold && settled + held > limit).length;
}

/**
 * Counts rejected requests that would have fit at every moment between their decision and their rejection. The settled
 * and held amounts, including orphans, and the request's amount must fit the limit.
 */
export function countFalseRefusals(
  refusals: readonly EvidenceLeaf[],
  audit: readonly CounterState[],
  { limit, amount }: Allowance,
): number {
  const ofKey = Map.groupBy(audit, ({ subject }) => subject);
  return refusals.filter((leaf) => {
    const states = ofKey.get(keyOf(leaf)) ?? [];
    const before = states.findLastIndex(({ at }) => at <= leaf.at);
    return states
      .slice(Math.max(0, before))
      .filter(({ at }) => at <= leaf.at + maxRequestMs)
      .every(({ settled, held }) => settled + held + amount <= limit);
  }).length;
}

function keyOf({ meta }: EvidenceLeaf): string {
  const facts: unknown = JSON.parse(meta);
  return typeof facts === "object" && facts !== null ? String(Reflect.get(facts, "key")) : "";
}
