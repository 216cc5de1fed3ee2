import {
  createHash,
  createHmac,
  createSecretKey,
  hash,
  type KeyObject,
  timingSafeEqual,
} from "node:crypto";
import { yieldToEventLoop } from "./event-loop.ts";

/** SHA-256 of bytes, or of a text's UTF-8 bytes. */
export function sha256(data: string | Uint8Array): Buffer {
  // Creating the digest as text costs less than half as much as creating it as bytes.
  return Buffer.from(hash("sha256", data, "binary"), "latin1");
}

export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

/** Bytes as text, two digits each. Doesn't copy them. */
export function hexOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString("hex");
}

/** A scratch buffer for joining short parts. Its contents are only valid within one call. */
const scratch = Buffer.allocUnsafeSlow(65_536);

/** SHA-256 of several parts in order: bytes, and the UTF-8 bytes of texts. */
export function sha256Of(...parts: readonly (string | Uint8Array)[]): Buffer {
  let size = 0;
  for (const part of parts) {
    // A UTF-16 unit takes at most three bytes.
    if (size + 3 * part.length > scratch.length) return digestOf(parts);
    if (typeof part === "string") size += scratch.write(part, size);
    else {
      scratch.set(part, size);
      size += part.length;
    }
  }
  return sha256(scratch.subarray(0, size));
}

/** Large parts aren't copied. */
function digestOf(parts: readonly (string | Uint8Array)[]): Buffer {
  const digest = createHash("sha256");
  for (const part of parts) digest.update(part);
  return digest.digest();
}

/** Bytes that are digested before other work gets a turn. */
const turnBytes = 4_194_304;

/** SHA-256 of a text's UTF-8 bytes and then of bytes, which may be many. */
export async function sha256InTurns(text: string, bytes: Uint8Array): Promise<Buffer> {
  const digest = createHash("sha256").update(text);
  for (let at = 0; at < bytes.length; at += turnBytes) {
    if (at > 0) await yieldToEventLoop();
    digest.update(bytes.subarray(at, at + turnBytes));
  }
  return digest.digest();
}

/** A key for HMACs. Creating it costs several times as much as an HMAC. */
export function hmacKey(bytes: Uint8Array): KeyObject {
  return createSecretKey(bytes);
}

/** HMAC-SHA256 of the UTF-8 bytes of texts in order. */
export function hmacSha256(key: KeyObject, ...texts: readonly string[]): Buffer {
  const mac = createHmac("sha256", key);
  for (const text of texts) mac.update(text);
  return mac.digest();
}

/** Compares two digests in constant time. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
