import type {
  LanguageModelV3Content,
  LanguageModelV3FilePart,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FilePart,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import type { Message } from "@tollgate/core/provider";
import type { AiSdkModel } from "./options.ts";
import { type Image, promptOf } from "./prompt.ts";
import type { Settings } from "./settings.ts";

/** One part of an answer, in either version of the AI SDK's specification. */
export type Part = LanguageModelV3StreamPart | LanguageModelV4StreamPart;

export interface ModelCall {
  readonly messages: readonly Message[];
  readonly settings: Settings;
  readonly stream: boolean;
  readonly signal: AbortSignal;
}

/** The options of a call, in the newer version of the specification. */
export function callOptions({
  messages,
  settings,
  signal,
}: Omit<ModelCall, "stream">): LanguageModelV4CallOptions {
  return { ...settings, prompt: promptOf(messages, file), abortSignal: signal };
}

/** Calls a model. Returns the parts of its stream, or its whole answer as the same parts. */
export async function callModel(
  model: AiSdkModel,
  modelCall: ModelCall,
): Promise<AsyncIterator<Part>> {
  if (model.specificationVersion === "v4") {
    const options = callOptions(modelCall);
    if (modelCall.stream) return read((await model.doStream(options)).stream);
    return read(partsOf(await model.doGenerate(options)));
  }
  // The older version has no reasoning effort.
  const { reasoning: _, ...settings } = modelCall.settings;
  const { signal: abortSignal, messages } = modelCall;
  const options = { ...settings, prompt: promptOf(messages, olderFile), abortSignal };
  if (modelCall.stream) return read((await model.doStream(options)).stream);
  return read(partsOf(await model.doGenerate(options)));
}

function file({ mediaType, data }: Image): LanguageModelV4FilePart {
  return {
    type: "file",
    mediaType,
    data: typeof data === "string" ? { type: "data", data } : { type: "url", url: data },
  };
}

function olderFile({ mediaType, data }: Image): LanguageModelV3FilePart {
  return { type: "file", mediaType, data };
}

function* partsOf(
  result: LanguageModelV3GenerateResult | LanguageModelV4GenerateResult,
): Generator<Part> {
  const { response, content, finishReason, usage } = result;
  if (response) yield { type: "response-metadata", ...response };
  for (const [index, piece] of content.entries()) yield* piecesOf(piece, String(index));
  yield { type: "finish", finishReason, usage };
}

function* piecesOf(
  piece: LanguageModelV3Content | LanguageModelV4Content,
  id: string,
): Generator<Part> {
  if (piece.type !== "text" && piece.type !== "reasoning") return yield piece;
  const { type, text: delta, providerMetadata } = piece;
  yield { type: `${type}-delta`, id, delta, ...(providerMetadata && { providerMetadata }) };
  if (type === "reasoning") yield { type: "reasoning-end", id };
}

async function* read(parts: AsyncIterable<Part> | Iterable<Part>): AsyncGenerator<Part> {
  yield* parts;
}
