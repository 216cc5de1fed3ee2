import { isKnownVersion, isModel } from "./configuration.ts";
import { notSent, rejected } from "./failures.ts";
import type { AiSdkModel, AiSdkProvider } from "./options.ts";

// The AI SDK's providers put a model's name into a path. This is what cannot change where that path leads.
const safeName = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[A-Za-z0-9][A-Za-z0-9._:@+~/-]{0,199}$/;

/**
 * The language model for a name. A model given by itself answers to its own name only: under any other a caller would
 * get what the policy and the prices know by another name.
 */
export function languageModel(source: AiSdkProvider | AiSdkModel, name: string): AiSdkModel {
  if (!safeName.test(name) || (isModel(source) && source.modelId !== name))
    throw rejected("The provider has no such model.", { status: 404, param: "model" });
  const model = isModel(source) ? source : source.languageModel(name);
  if (isModel(model) && isKnownVersion(model)) return model;
  throw notSent("misconfigured", "The provider has no language model of a version that is known.");
}
