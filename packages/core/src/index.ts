/** The governed model gateway you embed. */
export type { Activity, ActivityFilter } from "./administration/activity.ts";
export type {
  AdminTokenRecord,
  AdminTokens,
  AdminTokenWithSecret,
  CreateAdminTokenOptions,
  CreatedAdminToken,
} from "./administration/admin-tokens.ts";
export type { Administration } from "./administration/administration.ts";
export type {
  BudgetDrift,
  BudgetRaiseRecord,
  BudgetReconciliation,
  BudgetRecord,
  BudgetStatus,
  BudgetStatusQuery,
  Budgets,
  RaiseBudgetOptions,
  UnusedId,
} from "./administration/budgets.ts";
export type { ChangeFilter, ChangeRecord, Changes } from "./administration/changes.ts";
export type {
  Configured,
  ModelRecord,
  PolicyRecord,
  PolicyRuleRecord,
} from "./administration/configured.ts";
export type {
  ConnectionRecord,
  ConnectionReference,
  Connections,
  ResealResult,
  SetConnectionOptions,
} from "./administration/connections.ts";
export type { ContentReference } from "./administration/content-reading.ts";
export type {
  CorrectedUsage,
  RepricedAttempt,
  RepriceOptions,
  StepCorrection,
} from "./administration/corrections.ts";
export type { DecisionFilter, DecisionRecord, Decisions } from "./administration/decisions.ts";
export type { IfMatch } from "./administration/etag.ts";
export type {
  CheckpointFilter,
  CheckpointRecord,
  Evidence,
  LogRecord,
  VerifyOptions,
} from "./administration/evidence.ts";
export type { ExportFormat, ExportOptions } from "./administration/export.ts";
export type { Idempotent, NotIdempotent } from "./administration/idempotency.ts";
export type {
  CreatedKey,
  CreateKeyOptions,
  KeyFilter,
  KeyRecord,
  KeyReference,
  Keys,
  KeyWithSecret,
  RevokedKeys,
  UpdateKeyOptions,
  UserKeysReference,
  WithActor,
} from "./administration/keys.ts";
export type { List, Page, Paging } from "./administration/list.ts";
export type {
  RateLimitRecord,
  RateLimitStatus,
  RateLimitStatusQuery,
  RateLimits,
} from "./administration/rate-limits.ts";
export type {
  SessionFilter,
  SessionRecord,
  Sessions,
  TranscriptEntry,
  TranscriptReference,
} from "./administration/sessions.ts";
export type {
  MissingContent,
  StepContent,
  StepContentPart,
} from "./administration/step-content.ts";
export type { StepFilter } from "./administration/step-filter.ts";
export type {
  ActivityRecord,
  AttemptRecord,
  BilledTo,
  CorrectionRecord,
  FiguresRecord,
  StepRecord,
} from "./administration/step-records.ts";
export type { Steps } from "./administration/steps.ts";
export type { SeriesOptions, UsageBucket, UsageSummary } from "./administration/summaries.ts";
export { everyOrganization, type OrganizationScope } from "./administration/tenant.ts";
export type {
  UsageDifference,
  UsageReconciliation,
  UsageReconciliationOptions,
} from "./administration/usage-reconciliation.ts";
export type { RetryRules } from "./attempts/retry.ts";
export type { RateLimitConfiguration } from "./budgets/rate-limits.ts";
export type { BudgetConfiguration, BudgetLimit } from "./budgets/read-budget.ts";
export type { SecretKeys } from "./connections/key-ring.ts";
export type { Authenticate, HostCaller } from "./contracts/authenticate.ts";
export type { EvidenceSigner } from "./contracts/evidence-signer.ts";
export type {
  FailedRequest,
  GatewayEvent,
  Observer,
  TracedAttempt,
  TraceParent,
} from "./contracts/observer.ts";
export type { PriceBook } from "./contracts/price-book.ts";
export type { SecretBox, WrappedKey } from "./contracts/secret-box.ts";
export type { StoreStatus } from "./contracts/store.ts";
export type { BudgetScope } from "./domain/budget.ts";
export type { ChangeKind } from "./domain/change-kind.ts";
export type { ClientSignal } from "./domain/client-signal.ts";
export type { Deadlines, Limits } from "./domain/limits.ts";
export type { ModelFacts } from "./domain/model-facts.ts";
export type { ModelAliases, ModelId } from "./domain/model-id.ts";
export { type ListPrice, type Price, type PriceSource, pricedKinds } from "./domain/price.ts";
export type { RateLimitScope, RatePeriod } from "./domain/rate-limit.ts";
export type { Latencies, SummaryDimension, UsageSums } from "./domain/usage-group.ts";
export type {
  EndpointHandlers,
  Handler,
  Mountable,
  RequestHandlers,
} from "./endpoints/request-handlers.ts";
export type { ErrorCode } from "./errors/codes.ts";
export { errorBody, GatewayError } from "./errors/gateway-error.ts";
export { type Ed25519PrivateKey, ed25519Signer } from "./evidence/ed25519-signer.ts";
export type { LogProblem, VerifiedLog } from "./evidence/verify-log.ts";
export { createGateway, type Gateway, requireGateway } from "./gateway.ts";
export type { BridgedRequest, GatewayRequest, RequestHeaders } from "./http/gateway-request.ts";
export type { GatewayResponse, StreamBody, TextSink } from "./http/gateway-response.ts";
export { type Clock, systemClock, type TimerOptions } from "./kernel/clock.ts";
export { type CsvField, csvRecord } from "./kernel/csv.ts";
export { type Duration, parseDuration } from "./kernel/duration.ts";
export { createRandomIds, type IdSource } from "./kernel/ids.ts";
export { formatUsd } from "./kernel/nano-usd.ts";
export type { ProcessLoad } from "./kernel/process-load.ts";
export type { GatewayOptions } from "./options.ts";
export type { GatewayStatus, Health } from "./pipeline/health.ts";
export type { CloseOptions } from "./pipeline/process.ts";
export type { BreakerConfiguration, UpstreamConfiguration } from "./pipeline/upstreams.ts";
export type { PriceTable } from "./routing/configured-prices.ts";
export {
  type VirtualModelConfiguration,
  type VirtualModels,
  type VirtualTarget,
  virtual,
} from "./routing/virtual.ts";
