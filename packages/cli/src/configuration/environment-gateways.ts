import type { AnthropicProviderOptions } from "@tollgate/provider-anthropic";
import type { OpenaiCompatibleOptions } from "@tollgate/provider-openai";

/** An upstream that needs only a key. */
export interface KnownUpstream
  extends Pick<
    OpenaiCompatibleOptions,
    "baseURL" | "billing" | "maxTokensField" | "developerRole"
  > {
  readonly gateway: string;
  readonly variable: string;
  /** Whether the upstream sells models of many vendors, and every name begins with its vendor. */
  readonly manyVendors?: true;
}

/** Settings for upstreams that follow an older version of the protocol. */
export const olderDialect = { maxTokensField: "max_tokens", developerRole: "system" } as const;

/** The upstreams that get a gateway if their key is in the environment, and that are provider types of configuration files. */
export const knownUpstreams: readonly KnownUpstream[] = [
  { gateway: "openai", variable: "OPENAI_API_KEY", baseURL: "https://api.openai.com/v1" },
  {
    gateway: "openrouter",
    variable: "OPENROUTER_API_KEY",
    baseURL: "https://openrouter.ai/api/v1",
    manyVendors: true,
    // OpenRouter sends each call to one of several providers, at that provider's price.
    billing: { reportedCost: "trust" },
  },
  { gateway: "groq", variable: "GROQ_API_KEY", baseURL: "https://api.groq.com/openai/v1" },
  {
    gateway: "mistral",
    variable: "MISTRAL_API_KEY",
    baseURL: "https://api.mistral.ai/v1",
    ...olderDialect,
  },
  {
    gateway: "deepseek",
    variable: "DEEPSEEK_API_KEY",
    baseURL: "https://api.deepseek.com/v1",
    ...olderDialect,
  },
  { gateway: "xai", variable: "XAI_API_KEY", baseURL: "https://api.x.ai/v1" },
  {
    gateway: "together",
    variable: "TOGETHER_API_KEY",
    baseURL: "https://api.together.xyz/v1",
    manyVendors: true,
    ...olderDialect,
  },
  {
    gateway: "fireworks",
    variable: "FIREWORKS_API_KEY",
    baseURL: "https://api.fireworks.ai/inference/v1",
    ...olderDialect,
  },
  { gateway: "cerebras", variable: "CEREBRAS_API_KEY", baseURL: "https://api.cerebras.ai/v1" },
  {
    gateway: "gemini",
    variable: "GEMINI_API_KEY",
    baseURL: "https://generativelanguage.googleapis.com/v1beta/openai",
    developerRole: "system",
  },
];

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the gateways over Chat Completions with a key or address in the environment, by name. */
export function environmentGateways(
  environment: Environment,
): Readonly<Record<string, OpenaiCompatibleOptions>> {
  return { ...withKeys(environment), ...azure(environment), ...ollama(environment) };
}

/** Returns the options of the gateway `anthropic`, which has its own protocol. Null without a key in the environment. */
export function anthropicOptions({
  ANTHROPIC_API_KEY: apiKey,
}: Environment): AnthropicProviderOptions | null {
  return apiKey ? { apiKey, listModels: true } : null;
}

/** Azure models are named by their deployments. */
function azure({ AZURE_OPENAI_ENDPOINT: endpoint, AZURE_OPENAI_API_KEY: apiKey }: Environment) {
  if (!endpoint || !apiKey) return {};
  const baseURL = `${withoutLastSlash(endpoint)}/openai/v1`;
  return { azure: { baseURL, apiKey, vendor: "openai" } };
}

/** Reads `OLLAMA_HOST` like Ollama's own tools: a host and a port, or a URL. */
function ollama({ OLLAMA_HOST: host }: Environment) {
  if (!host) return {};
  const address = /^https?:/.test(host) ? host : `http://${host}`;
  const baseURL = `${withoutLastSlash(address)}/v1`;
  return { ollama: { ...olderDialect, baseURL, apiKey: null, listModels: true, vendor: "ollama" } };
}

function withoutLastSlash(address: string): string {
  return address.endsWith("/") ? address.slice(0, -1) : address;
}

function withKeys(environment: Environment): Readonly<Record<string, OpenaiCompatibleOptions>> {
  return Object.fromEntries(
    knownUpstreams.flatMap((upstream) => {
      const apiKey = environment[upstream.variable];
      if (!apiKey) return [];
      return [[upstream.gateway, { ...optionsOfUpstream(upstream), apiKey, listModels: true }]];
    }),
  );
}

/** Returns the options for an upstream, without its key. */
export function optionsOfUpstream({
  gateway,
  variable: _variable,
  manyVendors,
  ...options
}: KnownUpstream): Omit<OpenaiCompatibleOptions, "apiKey"> {
  // OpenAI itself calls `openai/gpt-5` just `gpt-5`.
  return { ...options, ...(manyVendors ? {} : { vendor: gateway }) };
}
