import { hash, timingSafeEqual } from "node:crypto";

/** SHA-256 of a text's UTF-8 bytes or of bytes. */
export function sha256(data: string | Uint8Array): Buffer {
  return hash("sha256", data, "buffer");
}

export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

/** Compares two digests in constant time. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
