/** The kind of event that a leaf attests. */
export type LeafKind =
  | "decision"
  | "step.opened"
  | "attempt.opened"
  | "step.settled"
  | "key.created"
  | "key.updated"
  | "key.rotated"
  | "key.revoked"
  | "connection.set"
  | "connection.removed"
  | "connection.resealed"
  | "budget.created"
  | "budget.updated"
  | "budget.removed"
  | "budget.raised"
  | "budget.raise_cancelled"
  | "rate_limit.created"
  | "rate_limit.updated"
  | "rate_limit.removed"
  | "admin_token.created"
  | "admin_token.revoked"
  | "response.deleted"
  | "activity.removed"
  | "transcripts.erased"
  | "correction"
  | "transcript.read"
  | "policy.changed";

/**
 * One unsequenced record of the evidence log, written in the same transaction as the event it attests. `meta` is canonical JSON
 * (sorted keys, integers only) and `hash` is SHA-256(0x00 ‖ meta), a leaf of an RFC 6962 tree.
 */
export interface EvidenceLeaf {
  readonly id: string;
  readonly organizationId: string;
  readonly kind: LeafKind;
  readonly at: number;
  readonly meta: string;
  readonly hash: Uint8Array;
}
