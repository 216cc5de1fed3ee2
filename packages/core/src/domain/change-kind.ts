import type { LeafKind } from "./evidence-leaf.ts";

/**
 * What leaves attest that is no administrative change: requests, what callers delete, what retention removes. Stores
 * have an index of all others; another kind in this list needs another version of their schema.
 */
export const unchangingKinds = [
  "decision",
  "step.opened",
  "attempt.opened",
  "step.settled",
  "response.deleted",
  "activity.removed",
  "transcripts.erased",
] as const satisfies readonly LeafKind[];

/** What an administrative change is called. */
export type ChangeKind = Exclude<LeafKind, (typeof unchangingKinds)[number]>;

const unchanging: ReadonlySet<string> = new Set(unchangingKinds);

/** Whether a leaf attests an administrative change. */
export function isChangeKind(kind: LeafKind): kind is ChangeKind {
  return !unchanging.has(kind);
}
