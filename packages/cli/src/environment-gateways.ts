import type { OpenaiCompatibleOptions } from "@tollgate/provider-openai";

/** A provider whose account is used when its key stands in the environment. */
interface KnownUpstream
  extends Pick<OpenaiCompatibleOptions, "baseURL" | "maxTokensField" | "developerRole"> {
  readonly gateway: string;
  readonly variable: string;
  /** Whether the upstream's own model names begin with their vendor's, always. */
  readonly vendorNames?: true;
}

const older = { maxTokensField: "max_tokens", developerRole: "system" } as const;

const knownUpstreams: readonly KnownUpstream[] = [
  { gateway: "openai", variable: "OPENAI_API_KEY", baseURL: "https://api.openai.com/v1" },
  {
    gateway: "openrouter",
    variable: "OPENROUTER_API_KEY",
    baseURL: "https://openrouter.ai/api/v1",
    vendorNames: true,
  },
  { gateway: "groq", variable: "GROQ_API_KEY", baseURL: "https://api.groq.com/openai/v1" },
  {
    gateway: "mistral",
    variable: "MISTRAL_API_KEY",
    baseURL: "https://api.mistral.ai/v1",
    ...older,
  },
  {
    gateway: "deepseek",
    variable: "DEEPSEEK_API_KEY",
    baseURL: "https://api.deepseek.com/v1",
    ...older,
  },
  { gateway: "xai", variable: "XAI_API_KEY", baseURL: "https://api.x.ai/v1" },
  {
    gateway: "together",
    variable: "TOGETHER_API_KEY",
    baseURL: "https://api.together.xyz/v1",
    vendorNames: true,
    ...older,
  },
  {
    gateway: "fireworks",
    variable: "FIREWORKS_API_KEY",
    baseURL: "https://api.fireworks.ai/inference/v1",
    ...older,
  },
  { gateway: "cerebras", variable: "CEREBRAS_API_KEY", baseURL: "https://api.cerebras.ai/v1" },
  {
    gateway: "gemini",
    variable: "GEMINI_API_KEY",
    baseURL: "https://generativelanguage.googleapis.com/v1beta/openai",
    developerRole: "system",
  },
];

/** The gateways whose provider keys the environment holds, by name. */
export function environmentGateways(
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, OpenaiCompatibleOptions>> {
  return Object.fromEntries(
    knownUpstreams.flatMap(({ gateway, variable, vendorNames, ...options }) => {
      const apiKey = environment[variable];
      if (!apiKey) return [];
      const modelName = vendorNames ? undefined : withoutVendor(gateway);
      return [[gateway, { ...options, apiKey, ...(modelName && { modelName }) }]];
    }),
  );
}

/** `openai/gpt-5` is `gpt-5` where OpenAI itself is asked; another vendor's name stays. */
function withoutVendor(gateway: string): (model: string) => string {
  return (model) => (model.startsWith(`${gateway}/`) ? model.slice(gateway.length + 1) : model);
}
