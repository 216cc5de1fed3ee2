/** Anthropic's Messages API as a provider. */
export { anthropic } from "./anthropic.ts";
export { type AnthropicProviderOptions, anthropicSchema } from "./options.ts";
