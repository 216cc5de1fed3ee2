import { isKnownVersion, isModel } from "./configuration.ts";
import { notSent, rejected } from "./failures.ts";
import type { AiSdkModel, AiSdkProvider } from "./options.ts";

// The AI SDK's providers put the model's name into a path. These names can't change the target of the path.
const safeName = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[A-Za-z0-9][A-Za-z0-9._:@+~/-]{0,199}$/;

/**
 * Returns the language model for a name. A single model accepts only its own name: under another name, a caller would
 * bypass the policy and the prices for that model.
 */
export function languageModel(source: AiSdkProvider | AiSdkModel, name: string): AiSdkModel {
  if (!safeName.test(name) || (isModel(source) && source.modelId !== name))
    throw rejected("The provider has no such model.", { status: 404, param: "model" });
  const model = isModel(source) ? source : source.languageModel(name);
  if (isModel(model) && isKnownVersion(model)) return model;
  throw notSent("misconfigured", "The provider has no language model of a supported version.");
}
