import type { LeafKind } from "./evidence-leaf.ts";

/**
 * What leaves attest that is no administrative change: requests, what callers delete, what retention removes. Stores
 * have an index of all others; another kind in this list needs another version of their schema.
 */
export const nonChangeKinds = [
  "decision",
  "step.opened",
  "attempt.opened",
  "step.settled",
  "response.deleted",
  "activity.removed",
  "transcripts.erased",
] as const satisfies readonly LeafKind[];

/** What an administrative change is called. */
export type ChangeKind = Exclude<LeafKind, (typeof nonChangeKinds)[number]>;

/** All there are: what is not among them here is an error of types. */
const changes: Readonly<Record<ChangeKind, true>> = {
  "key.created": true,
  "key.updated": true,
  "key.rotated": true,
  "key.revoked": true,
  "connection.set": true,
  "connection.removed": true,
  "connection.resealed": true,
  "budget.created": true,
  "budget.updated": true,
  "budget.removed": true,
  "budget.raised": true,
  "budget.raise_cancelled": true,
  "rate_limit.created": true,
  "rate_limit.updated": true,
  "rate_limit.removed": true,
  correction: true,
  "policy.changed": true,
};

export const changeKinds: readonly string[] = Object.keys(changes);

/** Whether a leaf attests an administrative change. */
export function isChangeKind(kind: LeafKind): kind is ChangeKind {
  return Object.hasOwn(changes, kind);
}
