import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";

/** The result of one chunk of a sweep. */
export interface SweepResult {
  /** How many records were removed, or Sessions whose contents were erased. */
  readonly removed: number;
  /** `from` of the next call; null at the end. */
  readonly next: string | null;
}

/** A chunk of a sweep, which removes records older than `at - keep`, both in milliseconds. */
export interface Sweep {
  /** The first organization to sweep, in the order of their ids' UTF-8 bytes. `""` for all. */
  readonly from: string;
  readonly at: number;
  readonly keep: number;
  /** The most rows that one call removes one by one. A store with partitions by time may drop a whole partition instead. */
  readonly limit: number;
}

/** A chunk of the activity to remove. */
export interface StepSweep extends Sweep {
  /** Organizations with Steps that are in no hourly sum yet. Their Steps from this time on stay. */
  readonly unfolded: ReadonlyMap<string, number>;
  /** Makes the leaf for the removed Steps of one organization. Called again if the transaction is retried. */
  readonly leaf: (removed: RemovedSteps) => EvidenceLeaf;
}

/** Steps of one organization that were removed together. */
export interface RemovedSteps {
  readonly organizationId: string;
  readonly count: number;
}

/** A chunk of the transcripts to erase. */
export interface TranscriptSweep extends Sweep {
  /** Makes the leaf for the erased transcripts of one organization. Called again if the transaction is retried. */
  readonly leaf: (erased: ErasedTranscripts) => EvidenceLeaf;
}

/** Sessions of one organization whose contents were erased together, of long ones only a part. */
export interface ErasedTranscripts {
  readonly organizationId: string;
  readonly sessionIds: readonly string[];
}
