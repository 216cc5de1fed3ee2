import { modelProblems, stateProblems } from "@tollgate/core/provider";
import type { AiSdkModel, AiSdkOptions, AiSdkProvider, Connect } from "./options.ts";

/** The three forms a provider is made from. */
export type Source = AiSdkModel | AiSdkProvider | Connect;

const host = /^(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::\d{1,5})?$/;

export function isModel(source: unknown): source is AiSdkModel {
  return (
    typeof source === "object" && source !== null && "doGenerate" in source && "doStream" in source
  );
}

/** Providers of the AI SDK are functions with members; a function without is ours to call. */
export function isProvider(source: unknown): source is AiSdkProvider {
  return (
    ((typeof source === "object" && source !== null) || typeof source === "function") &&
    "languageModel" in source &&
    typeof source.languageModel === "function"
  );
}

/** Whether the model speaks a version this provider knows; the older ones have other usage and other files. */
export function isKnownVersion({ specificationVersion }: AiSdkModel): boolean {
  return specificationVersion === "v3" || specificationVersion === "v4";
}

/** What is wrong with the source and its options, one sentence each, without their secrets. */
export function problemsOf(source: Source, options: AiSdkOptions): readonly string[] {
  const { connection, apiKey, hosts = [], models } = options;
  const connects = typeof source === "function" && !isProvider(source);
  const usable = connects || isProvider(source) || isModel(source);
  return [
    ...(usable ? [] : ["aiSdk takes a language model or a provider of the AI SDK, or a function"]),
    ...(isModel(source) && !isKnownVersion(source)
      ? ["the language model must be of specification version v3 or v4"]
      : []),
    ...(connection === undefined || connection === "platform" || connection === "customer"
      ? []
      : ['connection must be "platform" or "customer"']),
    ...(connects || !usable ? [] : formProblems(options)),
    ...(connection === "customer" && apiKey !== undefined
      ? ["apiKey has no use on a customer-owned connection: the organization's own is given"]
      : []),
    ...("apiKey" in options &&
    typeof apiKey !== "function" &&
    !(typeof apiKey === "string" && apiKey)
      ? ["apiKey must be a string that is not empty, or a function"]
      : []),
    ...hosts
      .filter((name) => !host.test(name))
      .map((name) => `hosts: ${JSON.stringify(name)} is not a host name in lower case`),
    ...modelProblems(models),
    ...stateProblems(options),
  ];
}

/** What only the function form can keep. */
function formProblems({ connection, apiKey, hosts }: AiSdkOptions): readonly string[] {
  const asked = [
    ...(connection === "customer" ? ["a customer-owned connection"] : []),
    ...(apiKey === undefined ? [] : ["apiKey"]),
    ...(hosts === undefined ? [] : ["hosts"]),
  ];
  return asked.map((what) => `${what} needs the form aiSdk(({ fetch, credential }) => …)`);
}
