import {
  base64Of,
  type EmbeddingRequest,
  type EmbeddingVector,
  valuesOf,
} from "../../domain/embedding.ts";
import type { Limits } from "../../domain/limits.ts";
import type { Usage } from "../../domain/usage.ts";
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

/** The limits on a body. Token ids can make it list more values than any other. */
export function embeddingLimits(limits: Limits): Limits {
  return { ...limits, values: limits.values + maxTokenIds };
}

/**
 * The largest size of an answer's vectors in base64, in bytes. If the request sets no `dimensions`, each vector counts
 * with 3,072 values, the largest common size.
 */
export function vectorBytes({ inputs, dimensions = 3_072 }: EmbeddingRequest): number {
  return Math.ceil((inputs.length * dimensions * 16) / 3);
}

/** The JSON text of an answer, one vector at a time, because millions of numbers make a long text. */
export function* embeddingsBody(
  { model, format }: Pick<EmbeddingsCall, "model" | "format">,
  vectors: readonly EmbeddingVector[],
  { promptTokens, totalTokens }: Usage,
): Generator<string, undefined, undefined> {
  yield '{"object":"list","data":[';
  for (const [index, vector] of vectors.entries()) {
    const embedding = format === "base64" ? base64Of(vector) : valuesOf(vector);
    const text = JSON.stringify({ object: "embedding", index, embedding });
    yield index === 0 ? text : `,${text}`;
  }
  const usage = { prompt_tokens: promptTokens, total_tokens: totalTokens };
  yield `],${JSON.stringify({ model, usage }).slice(1)}`;
}
