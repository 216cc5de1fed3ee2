import type { ModelConfiguration } from "../contracts/provider.ts";
import { modelFaults } from "./read-price.ts";

const modelId = /^[^\s/\p{C}]+\/[^\s\p{C}]+$/u;
const longestId = 200;

/** What is wrong with the `models` of a provider's options, one sentence each, for its `problems`. */
export function modelProblems(
  models: Readonly<Record<string, ModelConfiguration>> | undefined,
): readonly string[] {
  return Object.entries(models ?? {}).flatMap(([id, model]) =>
    problemsOf(`models: ${JSON.stringify(id)}`, id, model),
  );
}

function problemsOf(name: string, id: string, model: ModelConfiguration): readonly string[] {
  if (id.length > longestId || !modelId.test(id))
    return [`${name} is not of the form <vendor>/<model>`];
  return modelFaults(model).map((fault) => `${name}: ${fault}`);
}
