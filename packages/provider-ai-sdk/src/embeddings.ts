import type { EmbeddingModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { type CompletionEvent, type EmbeddingRequest, orAborted } from "@tollgate/core/provider";
import { isEmbeddingModel, isKnownVersion, isProvider } from "./configuration.ts";
import { invalidAnswer, notSent, rejected } from "./failures.ts";
import type { AiSdkEmbeddingModel, AiSdkSource } from "./options.ts";

/** The result of one call, in either version of the AI SDK's specification. */
export type EmbeddingResult = Awaited<ReturnType<AiSdkEmbeddingModel["doEmbed"]>>;

/** Whether a source may have embedding models. Only a call shows it for a function. */
export function mayEmbed(source: unknown): boolean {
  if (!isProvider(source)) return typeof source === "function" || isEmbeddingModel(source);
  return typeof source.embeddingModel === "function";
}

/** The embedding model for a name that can't change the target of a path. A single model accepts only its own name. */
export function embeddingModel(source: AiSdkSource, name: string): AiSdkEmbeddingModel {
  const model = isEmbeddingModel(source) ? source : modelOf(source, name);
  if (model === null || (model === source && model.modelId !== name)) throw noModel();
  if (isEmbeddingModel(model) && isKnownVersion(model)) return model;
  throw notSent("misconfigured", "The provider has no embedding model of a supported version.");
}

function modelOf(source: AiSdkSource, name: string): AiSdkEmbeddingModel | null {
  return isProvider(source) ? (source.embeddingModel?.(name) ?? null) : null;
}

function noModel(): Error {
  const details = { status: 404, param: "model" } as const;
  return rejected("The provider doesn't have this embedding model.", details);
}

/**
 * Converts a request to the options of an AI SDK call, which takes only texts.
 * @throws ProviderError naming the parameter
 */
export function embeddingOptions(
  { inputs, dimensions }: EmbeddingRequest,
  providerOptions: SharedV4ProviderOptions | undefined,
): EmbeddingModelV4CallOptions {
  const values = inputs.flatMap((input) => (typeof input === "string" ? input : []));
  if (values.length < inputs.length)
    throw rejected("The provider's models take text, not token ids.", { param: "input" });
  if (dimensions !== undefined && providerOptions === undefined)
    throw rejected("The provider's models don't support this parameter.", { param: "dimensions" });
  return { values, ...(providerOptions && { providerOptions }) };
}

/** Asks a model once. The AI SDK would divide a longer list among several requests. */
export async function callEmbeddingModel(
  model: AiSdkEmbeddingModel,
  options: EmbeddingModelV4CallOptions,
): Promise<EmbeddingResult> {
  const max = (await model.maxEmbeddingsPerCall) ?? Number.POSITIVE_INFINITY;
  if (options.values.length > max)
    throw rejected("The provider's model doesn't take that many inputs at once.", {
      param: "input",
    });
  return model.doEmbed(options);
}

/** Reads the result of a call as events. */
export async function* readEmbeddings(
  pending: Promise<EmbeddingResult>,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<readonly CompletionEvent[], void, undefined> {
  const { embeddings, usage } = await orAborted(signal, () => pending);
  if (!Array.isArray(embeddings))
    throw invalidAnswer("invalid_answer", "The provider's answer contains no embeddings.");
  const promptTokens = usage?.tokens;
  // Some providers report that they don't know as NaN.
  const isKnown = promptTokens !== undefined && Number.isSafeInteger(promptTokens);
  yield [
    { type: "answer-started" },
    ...embeddings.map((vector, index) => ({ type: "embedding" as const, index, vector })),
    ...(isKnown ? [{ type: "usage" as const, usage: { promptTokens, completionTokens: 0 } }] : []),
    { type: "finish", reason: "stop" },
  ];
}
