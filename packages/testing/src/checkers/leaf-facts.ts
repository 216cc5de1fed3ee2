import type { EvidenceLeaf, Hold } from "@tollgate/core/store";

/** A JSON object of a leaf. */
export type Facts = Readonly<Record<string, unknown>>;

/** What a leaf attests, as JSON; empty where it is none. */
export function leafFacts({ meta }: EvidenceLeaf): Facts {
  try {
    return factsOf(JSON.parse(meta));
  } catch {
    return {};
  }
}

/** A member that is an object; empty where it is none. */
export function factsOf(value: unknown): Facts {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** The holds a leaf says were taken; none where the running ones are kept. */
export function leafHolds(leaf: EvidenceLeaf): readonly Hold[] {
  const { holds } = leafFacts(leaf);
  return Array.isArray(holds) ? holds.filter(isHold) : [];
}

function isHold(value: unknown): value is Hold {
  const { budgetId, subject, periodStart, unit, mode, limit, amount } = factsOf(value);
  return (
    [budgetId, subject, unit, mode].every((name) => typeof name === "string") &&
    [periodStart, limit, amount].every(Number.isSafeInteger)
  );
}
