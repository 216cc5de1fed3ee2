import type { ModelConfiguration } from "../contracts/provider.ts";
import { parseUsd } from "../kernel/nano-usd.ts";

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
  if (typeof model !== "object" || model === null) return [`${name} must hold prices`];
  const { input, output, cachedInput, maxOutputTokens, reasons } = model;
  return [
    ...Object.entries({ input, output, cachedInput })
      .filter(([, price]) => price !== undefined && parseUsd(price) === null)
      .map(([field]) => `${name}: ${field} must be US dollars, 0 or more, with at most 9 decimals`),
    ...(maxOutputTokens === undefined ||
    (Number.isSafeInteger(maxOutputTokens) && maxOutputTokens > 0)
      ? []
      : [`${name}: maxOutputTokens must be a whole number above 0`]),
    ...(reasons === undefined || typeof reasons === "boolean"
      ? []
      : [`${name}: reasons must be true or false`]),
  ];
}
