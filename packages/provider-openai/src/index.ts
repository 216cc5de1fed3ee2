/** Any OpenAI-compatible upstream as a provider. */
export { type OpenaiCompatibleOptions, openaiCompatible } from "./openai-compatible.ts";
