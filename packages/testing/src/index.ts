export { activityOf, stepOf } from "./assertions/activity-of.ts";
export { decisionOf } from "./assertions/decision-of.ts";
export {
  type BudgetFigures,
  type ExpectedBudget,
  expectBudget,
  expectExhausted,
} from "./assertions/expect-budget.ts";
export {
  type ExpectedDecision,
  expectDenied,
  expectPermitted,
} from "./assertions/expect-denied.ts";
export type { Barrier as Hold } from "./barrier.ts";
export { type Chat, type ChatFields, chatWith } from "./chat.ts";
export { checkActivity } from "./checkers/activity.ts";
export { checkBudgets } from "./checkers/budgets.ts";
export { checkDump } from "./checkers/check-dump.ts";
export { type DumpQuery, dumpStore, type SessionDump, type StoreDump } from "./checkers/dump.ts";
export { everyRow } from "./checkers/every-row.ts";
export { checkEvidence } from "./checkers/evidence.ts";
export { checkLeases, checkQuiet } from "./checkers/leases.ts";
export { checkTranscripts } from "./checkers/transcripts.ts";
export { checkUsage } from "./checkers/usage.ts";
export { checkUsageHours } from "./checkers/usage-hours.ts";
export { countingIds } from "./counting-ids.ts";
export {
  type MessageBlock,
  type MessagesRequest,
  type MessagesUpstream,
  messagesUpstream,
  type ScriptedMessage,
} from "./faults/messages-upstream.ts";
export { type GatewayProcess, spawnGateway } from "./faults/process.ts";
export { type PushedClock, pushedClock } from "./faults/pushed-clock.ts";
export { type RawClient, type RawPost, rawClient } from "./faults/raw-client.ts";
export {
  type ReachBarrier,
  type ServedProcess,
  serveAsProcess,
} from "./faults/serve-as-process.ts";
export {
  faultyStore,
  type RunningFault,
  type StoreFault,
  type StoreVerb,
} from "./faults/store.ts";
export { type TcpProxy, tcpProxy } from "./faults/tcp-proxy.ts";
export {
  type ScriptedUpstream,
  scriptedUpstream,
  type UpstreamExchange,
} from "./faults/upstream.ts";
export { type ManualClock, manualClock } from "./manual-clock.ts";
export type { ScriptedAnswer, ScriptedToolCall } from "./scripted-answer.ts";
export {
  type FailOptions,
  type Reply,
  type ReplyOptions,
  type ScriptedCall,
  type ScriptedProvider,
  type ScriptedProviderOptions,
  scriptedProvider,
} from "./scripted-provider.ts";
export {
  createTestGateway,
  type TestGateway,
  type TestGatewayOptions,
  type TestKey,
} from "./test-gateway.ts";
