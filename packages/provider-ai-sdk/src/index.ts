/** Any AI SDK language or embedding model as a provider. */
export { aiSdk } from "./ai-sdk.ts";
export type {
  AiSdkEmbeddingModel,
  AiSdkModel,
  AiSdkOptions,
  AiSdkProvider,
  AiSdkSource,
  Connect,
  ConnectOptions as Connection,
} from "./options.ts";
