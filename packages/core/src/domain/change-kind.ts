import { namesOf } from "../kernel/names-of.ts";
import type { LeafKind } from "./evidence-leaf.ts";

/**
 * Kinds of leaves that aren't administrative changes: requests, deletions by callers, and removals by retention. Stores
 * index all other kinds, so adding a kind here needs a new version of their schema.
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

/** The kind of an administrative change. Reading a transcript counts as one. */
export type ChangeKind = Exclude<LeafKind, (typeof nonChangeKinds)[number]>;

/** All of them. A missing one is a type error. */
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
  "admin_token.created": true,
  "admin_token.revoked": true,
  correction: true,
  "transcript.read": true,
  "policy.changed": true,
};

/** Every kind of administrative change. */
export const changeKinds: readonly ChangeKind[] = namesOf(changes);

/** Whether a leaf attests an administrative change. */
export function isChangeKind(kind: LeafKind): kind is ChangeKind {
  return Object.hasOwn(changes, kind);
}
