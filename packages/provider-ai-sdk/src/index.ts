/** Any AI SDK language model as a provider. */
export { aiSdk } from "./ai-sdk.ts";
export type {
  AiSdkModel,
  AiSdkOptions,
  AiSdkProvider,
  Connect,
  ConnectOptions as Connection,
} from "./options.ts";
