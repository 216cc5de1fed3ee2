import type { LanguageModelV3, LanguageModelV4, SharedV4ProviderOptions } from "@ai-sdk/provider";
import type {
  Billing,
  Clock,
  CompletionRequest,
  ConnectionOwnership,
  ModelOptions,
  StateOptions,
} from "@tollgate/core/provider";

/** A language model of the AI SDK, of either of the two versions its providers implement. */
export type AiSdkModel = LanguageModelV3 | LanguageModelV4;

/** A provider of the AI SDK: what `createAnthropic(…)` and its like return. */
export interface AiSdkProvider {
  languageModel(modelId: string): AiSdkModel;
}

/** What one call is made with. */
export interface ConnectOptions {
  /** The one way out of this call: pass it on. One request, no redirects, and a record of its host and its bytes. */
  readonly fetch: typeof globalThis.fetch;
  /** The organization's own credential on a customer-owned connection; on a platform connection the `apiKey` option. */
  readonly credential: string;
}

/** Makes the AI SDK's provider, or its model, for one call. Asked before every call, so it should be cheap: they are. */
export type Connect = (connection: ConnectOptions) => AiSdkProvider | AiSdkModel;

/** How an AI SDK language model is reached. */
export interface AiSdkOptions extends ModelOptions, StateOptions {
  /**
   * Whose account is used. Default `platform`; `customer` gives each organization's own credential to the function form,
   * the only one that can have it.
   */
  readonly connection?: ConnectionOwnership;
  /**
   * The platform's credential for the function form, where it comes as `credential`: a string, or a function asked
   * before every call. Default the empty string, for a function that knows its own.
   */
  readonly apiKey?: string | (() => string | Promise<string>);
  /** Hosts the function form may send to, such as `api.anthropic.com`. Default: the one the AI SDK's provider is set to. */
  readonly hosts?: readonly string[];
  /** Settings of the AI SDK's own for a request, by provider: `{ anthropic: { … } }`. Default: none. */
  readonly providerOptions?: (request: CompletionRequest) => SharedV4ProviderOptions;
  /** How calls are billed. Default: by the price table alone. */
  readonly billing?: Billing;
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock;
}
