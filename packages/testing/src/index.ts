export { type Chat, type ChatFields, chatWith } from "./chat.ts";
export { countingIds } from "./counting-ids.ts";
export {
  type ScriptedUpstream,
  scriptedUpstream,
  type UpstreamExchange,
} from "./faults/upstream.ts";
export type { Hold } from "./hold.ts";
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
export { type SimOptions, simProvider } from "./sim.ts";
export {
  createTestGateway,
  type TestGateway,
  type TestGatewayOptions,
  type TestKey,
} from "./test-gateway.ts";
