import {
  base64Of,
  type EmbeddingRequest,
  type EmbeddingVector,
  valuesOf,
} from "../../domain/embedding.ts";
import type { Limits } from "../../domain/limits.ts";
import type { Usage } from "../../domain/usage.ts";
import { isLarge, yieldToEventLoop } from "../../kernel/event-loop.ts";
import { beginReading } from "../dropped-fields.ts";
import { embeddingsRequest, maxTokenIds } from "./schema.ts";

/** The form of the vectors in an answer. */
export type VectorFormat = "float" | "base64";

/** A call of the embeddings endpoint. Its answers are never streamed, and it names no Session. */
export interface EmbeddingsCall {
  readonly model: string;
  readonly format: VectorFormat;
  readonly request: EmbeddingRequest;
}

/**
 * Reads a parsed body into a new call. Null members become absent.
 * @throws GatewayError with the code and the path of the first fault, in the order of the schema
 */
export function parseEmbeddings(body: unknown, limits: Limits): EmbeddingsCall {
  const {
    model,
    input,
    format = "float",
    ...rest
  } = embeddingsRequest(body, "", beginReading(limits, {}).reading);
  return { model, format, request: { inputs: input, ...rest } };
}

/** The limits on a body, which may list more values than any other: the ids of tokens. */
export function embeddingLimits(limits: Limits): Limits {
  return { ...limits, values: limits.values + maxTokenIds };
}

/** The vectors as a JSON list. Yields in between, because writing millions of numbers takes long. */
export async function embeddingsList(
  vectors: readonly EmbeddingVector[],
  format: VectorFormat,
): Promise<string> {
  const written: string[] = [];
  let size = 0;
  for (const [index, vector] of vectors.entries()) {
    const embedding = format === "base64" ? base64Of(vector) : valuesOf(vector);
    const text = JSON.stringify({ object: "embedding", index, embedding });
    written.push(text);
    size += text.length;
    if (!isLarge(size)) continue;
    size = 0;
    await yieldToEventLoop();
  }
  return `[${written.join(",")}]`;
}

/** The body of an answer. `list` is the JSON text of its vectors. */
export function embeddingsBody(
  model: string,
  list: string,
  { promptTokens, totalTokens }: Usage,
): string {
  const usage = { prompt_tokens: promptTokens, total_tokens: totalTokens };
  const rest = JSON.stringify({ model, usage });
  return `{"object":"list","data":${list},${rest.slice(1)}`;
}
