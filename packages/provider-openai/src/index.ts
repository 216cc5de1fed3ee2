/** Any OpenAI-compatible upstream as a provider. */
export { openaiCompatibleSchema } from "./configuration.ts";
export { openaiCompatible } from "./openai-compatible.ts";
export type { OpenaiCompatibleOptions } from "./options.ts";
