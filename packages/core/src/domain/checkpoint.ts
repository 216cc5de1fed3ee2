import type { EvidenceLeaf } from "./evidence-leaf.ts";

/** A state of an organization's log: the leaves sealed so far. `""` is the log of the leaves that belong to no organization. */
export interface Checkpoint {
  readonly organizationId: string;
  /** Counts the log's checkpoints, from 0. */
  readonly number: number;
  /** How many leaves it covers. */
  readonly size: number;
  /** The roots of the complete subtrees of its Merkle tree, the largest first, 32 bytes each: all that appending needs. */
  readonly frontier: Uint8Array;
  /** When its last leaves were sealed, in milliseconds since the epoch. */
  readonly at: number;
  /** The signed note (C2SP `tlog-checkpoint`). Null until it is signed. */
  readonly note: string | null;
}

/** A leaf and its place in its organization's log. */
export interface SealedLeaf {
  readonly organizationId: string;
  /** Counts the log's leaves, from 0. */
  readonly index: number;
  /** Null if the leaf was removed from the database. */
  readonly leaf: EvidenceLeaf | null;
}
