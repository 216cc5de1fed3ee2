/** The contract of stores, and the pure functions that all of them share. */
export type * from "./contracts/checkpoint-repository.ts";
export type * from "./contracts/key-repository.ts";
export type * from "./contracts/repositories.ts";
export type * from "./contracts/retention.ts";
export type * from "./contracts/step-query.ts";
export type * from "./contracts/step-verbs.ts";
export type * from "./contracts/store.ts";
export type * from "./contracts/usage-summary.ts";
export { type AdminRole, type AdminToken, adminRoles } from "./domain/admin-token.ts";
export type { ApiKey } from "./domain/api-key.ts";
export { keyIsLive, type LeadingSystem, leadingSystems } from "./domain/api-key.ts";
export { type AppliedCorrection, applyCorrection, figuresOf } from "./domain/apply-correction.ts";
export type * from "./domain/budget.ts";
export {
  budgetModes,
  budgetPeriods,
  budgetSubjects,
  budgetUnits,
  isBudgetUnit,
  isSameCounter,
} from "./domain/budget.ts";
export type { Owner } from "./domain/caller.ts";
export {
  type ChangeKind,
  changeKinds,
  isChangeKind,
  nonChangeKinds,
} from "./domain/change-kind.ts";
export type * from "./domain/checkpoint.ts";
export type * from "./domain/correction.ts";
export {
  type CursorPlace,
  decodeCursor,
  defaultMaxScanned,
  encodeCursor,
  foreignCursor,
  tieNumber,
} from "./domain/cursor.ts";
export type * from "./domain/evidence-leaf.ts";
export type { GatewayConnection, SealedConnection } from "./domain/gateway-connection.ts";
export {
  commitContent,
  fillLeaf,
  type LeafTemplate,
  leafHash,
  type StepAssignment,
} from "./domain/leaf-template.ts";
export type * from "./domain/obligations.ts";
export type { PackedSteps } from "./domain/packed-hours.ts";
export { lowerAscii } from "./domain/pattern.ts";
export type * from "./domain/policy-decision.ts";
export { connectionOwnerships } from "./domain/policy-decision.ts";
export type { Price, PriceSource } from "./domain/price.ts";
export type * from "./domain/rate-limit.ts";
export { ratePeriods, rateSubjects, rateUnits } from "./domain/rate-limit.ts";
export {
  isExpectedSession,
  type Session,
  type SessionFacts,
  type TranscriptPart,
} from "./domain/session.ts";
export type * from "./domain/step.ts";
export { endpointNames, stepOutcomes } from "./domain/step.ts";
export type { StoredResponse } from "./domain/stored-response.ts";
export type { Usage, UsageBasis } from "./domain/usage.ts";
export {
  createUsageFold,
  hourOf,
  type SummedStep,
  type UnfoldedStep,
  type UsageFold,
} from "./domain/usage-fold.ts";
export type * from "./domain/usage-group.ts";
export {
  correctionHours,
  createHourFold,
  type HourDetail,
  hourDetails,
  inDetail,
  type UsageHour,
  usageHours,
} from "./domain/usage-hours.ts";
export { GatewayError } from "./errors/gateway-error.ts";
export { yieldToEventLoop } from "./kernel/event-loop.ts";
export { createInFlight, type InFlight } from "./kernel/in-flight.ts";
