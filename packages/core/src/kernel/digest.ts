import {
  createHash,
  createHmac,
  createSecretKey,
  hash,
  type KeyObject,
  timingSafeEqual,
} from "node:crypto";

/** SHA-256 of a text's UTF-8 bytes or of bytes. */
export function sha256(data: string | Uint8Array): Buffer {
  return hash("sha256", data, "buffer");
}

export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

const smallBytes = 65_536;

/** SHA-256 of bytes one after the other; large ones are not copied for it. */
export function sha256Of(...parts: readonly Uint8Array[]): Buffer {
  const size = parts.reduce((sum, { length }) => sum + length, 0);
  if (size <= smallBytes) return sha256(Buffer.concat(parts, size));
  const digest = createHash("sha256");
  for (const part of parts) digest.update(part);
  return digest.digest();
}

/** A key of HMACs; making it costs several times what one of them does. */
export function hmacKey(bytes: Uint8Array): KeyObject {
  return createSecretKey(bytes);
}

/** HMAC-SHA256 of the UTF-8 bytes of texts, one after the other. */
export function hmacSha256(key: KeyObject, ...texts: readonly string[]): Buffer {
  const mac = createHmac("sha256", key);
  for (const text of texts) mac.update(text);
  return mac.digest();
}

/** Compares two digests in constant time. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
