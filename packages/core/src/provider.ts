/** What a provider implements, and what it is given. */
export type {
  Delivery,
  ModelConfiguration,
  Provider,
  ProviderCall,
} from "./contracts/provider.ts";
export { ProviderError } from "./contracts/provider.ts";
export type * from "./domain/completion-event.ts";
export type * from "./domain/completion-request.ts";
export type * from "./domain/message.ts";
export type { ConnectionOwnership } from "./domain/policy-decision.ts";
