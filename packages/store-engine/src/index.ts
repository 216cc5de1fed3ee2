/** The rules all stores share, as pure functions from a view of the store to a change. For authors of stores; an application doesn't need them. */
export { chainHead, chainLength, chainSlice } from "./chain.ts";
export { compareBytes } from "./compare-bytes.ts";
export { isSameHold, moveCounter } from "./holds.ts";
export type * from "./model.ts";
export { idTakenError, isOwnedBy, keptExpiry } from "./model.ts";
export { openStep } from "./open-step.ts";
export {
  type Ledger,
  type LedgerChunk,
  type LedgerCorrection,
  type LedgerReads,
  type LedgerStep,
  reconcile,
} from "./reconcile.ts";
export {
  deleteResponse,
  sweepResponses,
  sweepSteps,
  sweepTranscripts,
} from "./retention.ts";
export { type CursorSeal, openCursor, sealCursor } from "./sealed-cursor.ts";
export {
  findSession,
  isPrefix,
  type LineageSegment,
  lineageOf,
  transcriptPart,
} from "./sessions.ts";
export {
  attemptEndRecord,
  correct,
  openAttempt,
  recordRefusal,
  settleStep,
} from "./settle-step.ts";
export {
  type AttemptCorrection,
  type AttemptMessage,
  stepContents,
  withCorrections,
  withErrors,
} from "./whole-step.ts";
