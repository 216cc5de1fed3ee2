/** The contracts of providers and price books, and helpers to implement them. */

export { type UpstreamCode, upstreamCode } from "./attempts/upstream-code.ts";
export type { PriceBook } from "./contracts/price-book.ts";
export type {
  AnswerSink,
  Billing,
  ConfiguredPrice,
  ConfiguredRates,
  Delivery,
  EmbeddingCall,
  ListedModel,
  ModelConfiguration,
  ModelOptions,
  Provider,
  ProviderAnswer,
  ProviderCall,
  StateNeeds,
  TokenCount,
  UsdAmount,
  VirtualModel,
} from "./contracts/provider.ts";
export {
  createArgumentsReader,
  isTooMuchJson,
  modelsOf,
  ProviderError,
  retryAfterMs,
} from "./contracts/provider.ts";
export type * from "./domain/completion-event.ts";
export type * from "./domain/completion-request.ts";
export { effortOf } from "./domain/completion-request.ts";
export type { EmbeddingRequest, EmbeddingVector } from "./domain/embedding.ts";
export type * from "./domain/message.ts";
export { imagesAfterTools } from "./domain/message.ts";
export type { ModelFacts } from "./domain/model-facts.ts";
export type { ModelId } from "./domain/model-id.ts";
export type { ConnectionOwnership, TargetStrategy } from "./domain/policy-decision.ts";
export type { LongPromptPrice, Price, Rates, TierPrice } from "./domain/price.ts";
export { errorText, secretHeaders } from "./domain/provider-error-text.ts";
export type { StateFields } from "./domain/provider-state.ts";
export { isTierName } from "./domain/service-tier.ts";
export { fittingDetails, isTokenCount, reportedCost, type UsageDetails } from "./domain/usage.ts";
export { orAborted } from "./kernel/bounded-wait.ts";
export { addChunk } from "./kernel/byte-chunks.ts";
export { type Clock, systemClock } from "./kernel/clock.ts";
export { createAfterReads, isLarge, yieldToEventLoop } from "./kernel/event-loop.ts";
export { parseWithDigits } from "./kernel/json-guard.ts";
export { parseUsd } from "./kernel/nano-usd.ts";
export { isShallow } from "./kernel/returnable-json.ts";
export type { Json } from "./kernel/stable-json.ts";
export { type StateOptions, stateNeedsFor } from "./routing/state-needs.ts";
