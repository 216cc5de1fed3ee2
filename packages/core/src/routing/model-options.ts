import type { ModelOptions, Provider } from "../contracts/provider.ts";
import { tryRead } from "../input/read.ts";
import { listedModels } from "./model-schema.ts";

/** A provider's models and their names, from its options. A provider that lists models is closed by default. */
export function modelsOf(options: ModelOptions): Pick<Provider, "models" | "open" | "vendor"> {
  const { models = {}, vendor = null } = options;
  return { models, open: options.open ?? Object.keys(models).length === 0, vendor };
}

/** What is wrong with the `models` of a provider's options, one sentence each, for its `problems`. */
export function modelProblems(models: ModelOptions["models"]): readonly string[] {
  const { problems } = tryRead(listedModels, models, { noun: "member", path: "models" });
  return problems.map(({ message }) => message);
}
