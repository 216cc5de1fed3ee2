/** A request for embeddings, independent of the protocol. Members without a value are absent, never null. */
export interface EmbeddingRequest {
  /** All of them texts, or all of them lists of token ids. Each gets one vector. */
  readonly inputs: readonly string[] | readonly (readonly number[])[];
  /** The number of values in each vector. Default: the model's own. */
  readonly dimensions?: number;
  /** The client's name for its user. */
  readonly user?: string;
}

/**
 * The embedding of one input: its values, or the same as 32-bit floats, the lowest byte first, in base64. Providers return
 * what they get, so that nothing is converted twice.
 */
export type EmbeddingVector = readonly number[] | string;

/** Whether a vector can be passed on: it has values, and all of them are finite. */
export function isVector(vector: EmbeddingVector): boolean {
  if (vector.length === 0) return false;
  return typeof vector === "string" ? isFloats(vector) : vector.every(Number.isFinite);
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const bytesPerFloat = Float32Array.BYTES_PER_ELEMENT;

function isFloats(text: string): boolean {
  return (
    text.length % 4 === 0 &&
    base64.test(text) &&
    Buffer.byteLength(text, "base64") % bytesPerFloat === 0 &&
    floatsIn(text).every(Number.isFinite)
  );
}

function floatsIn(text: string): Float32Array {
  const { buffer, byteOffset, length } = Buffer.from(text, "base64");
  return new Float32Array(buffer.slice(byteOffset, byteOffset + length));
}

/** The values of a vector. */
export function valuesOf(vector: EmbeddingVector): readonly number[] {
  return typeof vector === "string" ? [...floatsIn(vector)] : vector;
}

/** A vector as 32-bit floats in base64. */
export function base64Of(vector: EmbeddingVector): string {
  if (typeof vector === "string") return vector;
  return Buffer.from(Float32Array.from(vector).buffer).toString("base64");
}
