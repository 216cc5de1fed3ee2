/** The rules of the stores, as decisions over what a store has: for those who write a store; an application needs none of it. */
export { chainHead, chainLength, chainSlice } from "./chain.ts";
export {
  type Change,
  type Decision,
  idTakenError,
  type Operation,
  type RowName,
} from "./change.ts";
export { findSession } from "./decide/assign.ts";
export { attemptEndRecord, errorRecord, openAttempt } from "./decide/attempt.ts";
export { correct } from "./decide/correct.ts";
export { moveCounter } from "./decide/hold.ts";
export { openStep } from "./decide/open.ts";
export { recordRefusal } from "./decide/refuse.ts";
export { deleteResponse, sweepResponses } from "./decide/respond.ts";
export { settleStep } from "./decide/settle.ts";
export { sweepSteps, sweepTranscripts } from "./decide/sweep.ts";
export { isOwnedBy } from "./is-owned-by.ts";
export { joinMessages } from "./join-messages.ts";
export { type LineageSegment, lineageOf } from "./lineage.ts";
export type * from "./records.ts";
export type { ResponseView, RetentionView, SessionView, View } from "./view.ts";
