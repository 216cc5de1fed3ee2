import type { ModelConfiguration, ModelOptions, Provider } from "../contracts/provider.ts";
import { parseModelId } from "../domain/model-id.ts";
import { modelFaults } from "./read-price.ts";

/** A provider's models and their names, from its options. A provider that lists models is closed by default. */
export function modelsOf(options: ModelOptions): Pick<Provider, "models" | "open" | "vendor"> {
  const { models = {}, vendor = null } = options;
  return { models, open: options.open ?? Object.keys(models).length === 0, vendor };
}

/** What is wrong with the `models` of a provider's options, one sentence each, for its `problems`. */
export function modelProblems(
  models: Readonly<Record<string, ModelConfiguration>> | undefined,
): readonly string[] {
  return Object.entries(models ?? {}).flatMap(([id, model]) =>
    problemsOf(`models: ${JSON.stringify(id)}`, id, model),
  );
}

function problemsOf(name: string, id: string, model: ModelConfiguration): readonly string[] {
  if (parseModelId(`g/${id}`) === null) return [`${name} is not of the form <vendor>/<model>`];
  return modelFaults(model).map((fault) => `${name}: ${fault}`);
}
