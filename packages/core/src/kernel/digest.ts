import { createHmac, hash, timingSafeEqual } from "node:crypto";

/** SHA-256 of a text's UTF-8 bytes or of bytes. */
export function sha256(data: string | Uint8Array): Buffer {
  return hash("sha256", data, "buffer");
}

export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

/** HMAC-SHA256 of the UTF-8 bytes of texts, one after the other. */
export function hmacSha256(key: Uint8Array, ...texts: readonly string[]): Buffer {
  const mac = createHmac("sha256", key);
  for (const text of texts) mac.update(text);
  return mac.digest();
}

/** Compares two digests in constant time. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
