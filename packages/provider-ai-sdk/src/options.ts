import type {
  EmbeddingModelV3,
  EmbeddingModelV4,
  LanguageModelV3,
  LanguageModelV4,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import type {
  Billing,
  Clock,
  CompletionRequest,
  ConnectionOwnership,
  EmbeddingRequest,
  ModelOptions,
  StateOptions,
} from "@tollgate/core/provider";

/** A language model of the AI SDK, in either of its two current versions. */
export type AiSdkModel = LanguageModelV3 | LanguageModelV4;

/** An embedding model of the AI SDK, in either of its two current versions. */
export type AiSdkEmbeddingModel = EmbeddingModelV3 | EmbeddingModelV4;

/** A provider of the AI SDK, such as the result of `createAnthropic(…)`. */
export interface AiSdkProvider {
  languageModel(modelId: string): AiSdkModel;
  embeddingModel?(modelId: string): AiSdkEmbeddingModel;
}

/** A provider or a model of the AI SDK. */
export type AiSdkSource = AiSdkProvider | AiSdkModel | AiSdkEmbeddingModel;

/** The `fetch` and the credential for one call. */
export interface ConnectOptions {
  /** Pass it to the AI SDK. It sends one request without redirects, and records its host and body. */
  readonly fetch: typeof globalThis.fetch;
  /** The organization's own credential on a customer-owned connection, and the `apiKey` option on a platform connection. */
  readonly credential: string;
}

/** Creates the AI SDK's provider or model for one call. Tollgate calls it before every call, so it should be cheap. */
export type Connect = (connection: ConnectOptions) => AiSdkSource;

/** How an AI SDK model is reached. */
export interface AiSdkOptions extends ModelOptions, StateOptions {
  /**
   * Whose account pays. Default `platform`. `customer` passes each organization's own credential to the function form. The
   * other forms don't support it.
   */
  readonly connection?: ConnectionOwnership;
  /**
   * The platform's credential, passed to the function form as `credential`: a string, or a function that Tollgate calls
   * before every call. Default: the empty string, for a function with its own credential.
   */
  readonly apiKey?: string | (() => string | Promise<string>);
  /** Hosts that the function form may send to, such as `api.anthropic.com`. Default: any host of the AI SDK's provider. */
  readonly hosts?: readonly string[];
  /**
   * Whether the function form sends the attempt's `traceparent` header, so that an upstream of your own joins the trace.
   * Default `none`: to a third party, it links the calls of one user.
   */
  readonly trace?: "none" | "send";
  /** The AI SDK's own settings for a request, by provider: `{ anthropic: { … } }`. Default: none. */
  readonly providerOptions?: (request: CompletionRequest) => SharedV4ProviderOptions;
  /**
   * The AI SDK's own settings for an embeddings request, by provider, such as `{ openai: { dimensions } }`. The AI SDK itself
   * has no setting for `dimensions`, so without this option a request with it is rejected. Default: none.
   */
  readonly embeddingOptions?: (request: EmbeddingRequest) => SharedV4ProviderOptions;
  /** How calls are billed. Default: by the price table only. */
  readonly billing?: Billing;
  /** The source of time. Default: the machine's clock. */
  readonly clock?: Clock;
}
