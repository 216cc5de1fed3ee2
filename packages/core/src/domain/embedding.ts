/** An embeddings request, independent of the protocol. Members without a value are absent, never null. */
export interface EmbeddingRequest {
  /** Either texts or lists of token ids, never both. Each gets one vector. */
  readonly inputs: readonly string[] | readonly (readonly number[])[];
  /** The number of values in each vector. Default: the model's own. */
  readonly dimensions?: number;
  /** The client's name for its user. */
  readonly user?: string;
}

/**
 * The embedding of one input: a list of numbers, or little-endian 32-bit floats in base64. Providers return the form that
 * they get, so nothing is converted twice.
 */
export type EmbeddingVector = readonly number[] | string;

/** The maximum length of a vector. No known model has longer ones. */
export const maxDimensions = 65_536;

const maxCharacters = Math.ceil((maxDimensions * 4) / 3) * 4;

/** Whether a vector can be passed on: it isn't empty or too long, and all its values are finite. */
export function isVector(vector: EmbeddingVector): boolean {
  const max = typeof vector === "string" ? maxCharacters : maxDimensions;
  if (vector.length === 0 || vector.length > max) return false;
  return typeof vector === "string" ? isFloats(vector) : vector.every(Number.isFinite);
}

/** An answer may have millions of values. Encoding the bytes again is the fastest test of base64. */
function isFloats(text: string): boolean {
  const bytes = Buffer.from(text, "base64");
  if (bytes.length % Float32Array.BYTES_PER_ELEMENT !== 0) return false;
  if (bytes.toString("base64") !== text) return false;
  const floats = floatsIn(bytes);
  for (let at = 0; at < floats.length; at++) if (!Number.isFinite(floats[at])) return false;
  return true;
}

function floatsIn({ buffer, byteOffset, length }: Buffer): Float32Array {
  return new Float32Array(buffer.slice(byteOffset, byteOffset + length));
}

/** The values of a vector. */
export function valuesOf(vector: EmbeddingVector): readonly number[] {
  return typeof vector === "string" ? [...floatsIn(Buffer.from(vector, "base64"))] : vector;
}

/** A vector as 32-bit floats in base64. */
export function base64Of(vector: EmbeddingVector): string {
  if (typeof vector === "string") return vector;
  return Buffer.from(Float32Array.from(vector).buffer).toString("base64");
}
