import type { EvidenceLeaf, Hold } from "@tollgate/core/store";

/** A JSON object of a leaf. */
export type Facts = Readonly<Record<string, unknown>>;

/** Returns the facts in a leaf. Empty if they are not JSON. */
export function leafFacts({ meta }: EvidenceLeaf): Facts {
  try {
    return factsOf(JSON.parse(meta));
  } catch {
    return {};
  }
}

/** Returns an object's members. Empty for any other value. */
export function factsOf(value: unknown): Facts {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Returns the holds that a leaf records. Empty if the previous holds are kept. */
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
