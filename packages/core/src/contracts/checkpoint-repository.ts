import type { Checkpoint, SealedLeaf } from "../domain/checkpoint.ts";
import type { StorePage, StorePaging } from "./repositories.ts";

/**
 * The logs of sealed leaves: one for each organization, and one, `""`, for leaves that belong to none. A leaf is sealed
 * once, at the next index of its log. Nothing sealed is ever changed or removed.
 */
export interface CheckpointRepository {
  /**
   * Looks at the next `limit` logs in the order of their organizations, and returns those with leaves that no signed
   * checkpoint covers. `after` is null at first.
   */
  unsealed(query: { readonly after: string | null; readonly limit: number }): Promise<UnsealedLogs>;
  /** The log's last checkpoint, signed or not; null before the first. */
  last(organizationId: string): Promise<Checkpoint | null>;
  /**
   * Up to `limit` leaves to seal next, in order. A leaf whose transaction commits later than those of leaves after it is
   * not skipped: it comes later.
   */
  next(query: { readonly organizationId: string; readonly limit: number }): Promise<LeafBatch>;
  /**
   * Gives the leaves of a batch the next indexes, and adds the checkpoint that covers them, without a note. Writes nothing
   * and returns false if the log has a checkpoint with this number, because another process sealed first.
   */
  add(entry: {
    readonly checkpoint: Omit<Checkpoint, "note">;
    readonly batch: LeafBatch;
  }): Promise<boolean>;
  /** Adds the note to a checkpoint. False if it has one. */
  sign(
    signed: Pick<Checkpoint, "organizationId" | "number"> & { readonly note: string },
  ): Promise<boolean>;
  /** Organizations with a log, or with leaves that no log has yet, sorted. */
  organizations(after: string | null, limit: number): Promise<readonly LogOwner[]>;
  /** A log's checkpoints from a number on, in order. */
  list(
    query: { readonly organizationId: string; readonly from: number },
    paging: StorePaging,
  ): Promise<StorePage<Checkpoint>>;
  /** A log's sealed leaves from an index on, in order. */
  leaves(
    query: { readonly organizationId: string; readonly from: number },
    paging: StorePaging,
  ): Promise<StorePage<SealedLeaf>>;
  /**
   * Looks at the next `limit` leaves of an organization in the order of their places, and counts those without an index
   * below `size`. Doesn't rely on which places sealing recorded as settled. `after` is null at first.
   */
  outside(query: OutsideQuery): Promise<LeavesOutside>;
}

/** An organization with leaves. */
export interface LogOwner {
  readonly organizationId: string;
  /** The time of its log's last checkpoint, signed or not; null before the first. */
  readonly sealedAt: number | null;
}

/** Which leaves to count as outside a log of `size` leaves. */
export interface OutsideQuery {
  readonly organizationId: string;
  readonly size: number;
  /** Leaves written from this time to `to`, inclusive, may still wait, and don't count. */
  readonly from: number;
  readonly to: number;
  readonly after: number | null;
  readonly limit: number;
}

/** The leaves outside the log that one call found. */
export interface LeavesOutside {
  readonly count: number;
  /** The earliest time of those leaves; null for none. */
  readonly since: number | null;
  /** The `after` of the next call; null at the end. */
  readonly next: number | null;
}

/** Some logs with leaves to seal, and the `after` of the next ones; null at the end. */
export interface UnsealedLogs {
  readonly logs: readonly UnsealedLog[];
  readonly next: string | null;
}

/** A log with leaves that no signed checkpoint covers. */
export interface UnsealedLog {
  readonly organizationId: string;
  /** When the first of them was written, on the gateway's clock. */
  readonly since: number;
}

/** Leaves to seal together. Only the store makes sense of `places` and `settled`. */
export interface LeafBatch {
  readonly hashes: readonly Uint8Array[];
  /** The numbers of the leaves in the store, ascending. */
  readonly places: readonly number[];
  /** No leaf with this number or a lower one can appear any longer. */
  readonly settled: number;
  /** When the first of the leaves was written. 0 for none. */
  readonly since: number;
}
