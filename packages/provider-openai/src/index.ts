/** Any OpenAI-compatible upstream as a provider. */
export { openaiCompatible } from "./openai-compatible.ts";
export { type OpenaiCompatibleOptions, openaiCompatibleSchema } from "./options.ts";
