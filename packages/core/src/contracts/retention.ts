import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";

/** What one chunk of a sweep did. */
export interface SweepResult {
  /** How many records were removed, or Sessions whose contents were erased. */
  readonly removed: number;
  /** Whether another call may find more. */
  readonly more: boolean;
}

/** What a chunk of a sweep is to remove: what is older than `keep` at `at`, both in milliseconds. */
export interface Sweep {
  readonly at: number;
  readonly keep: number;
  /** The most that one call removes row by row. A store that keeps its rows by time may drop a whole stretch instead. */
  readonly limit: number;
}

/** A chunk of the activity to remove. */
export interface StepSweep extends Sweep {
  /** The leaf of what was removed of one organization, written with it. Asked again when the change has to be repeated. */
  readonly leaf: (removed: RemovedSteps) => EvidenceLeaf;
}

/** Steps of one organization that were removed together. */
export interface RemovedSteps {
  readonly organizationId: string;
  readonly count: number;
}

/** A chunk of the transcripts to erase. */
export interface TranscriptSweep extends Sweep {
  /** The leaf of what was erased of one organization, written with it. Asked again when the change has to be repeated. */
  readonly leaf: (erased: ErasedTranscripts) => EvidenceLeaf;
}

/** Sessions of one organization whose contents were erased together. */
export interface ErasedTranscripts {
  readonly organizationId: string;
  readonly sessionIds: readonly string[];
}
