import type { ModelOptions, Provider } from "../contracts/provider.ts";

/** Reads a provider's models and their names from its options. A provider that lists models is closed by default. */
export function modelsOf(options: ModelOptions): Pick<Provider, "models" | "open" | "vendor"> {
  const { models = {}, vendor = null } = options;
  return { models, open: options.open ?? Object.keys(models).length === 0, vendor };
}
