import { createCipheriv, createDecipheriv, type KeyObject } from "node:crypto";

/** A key, and the context that the ciphertext is bound to. It decrypts only with the same context. */
export interface CipherParameters {
  /** 32 bytes. */
  readonly key: Uint8Array | KeyObject;
  readonly context: Uint8Array;
}

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts with AES-256-GCM. Returns nonce, ciphertext and tag in one piece. `random` creates the 96-bit nonce. */
export function encrypt(
  plain: Uint8Array,
  { key, context }: CipherParameters,
  random: (length: number) => Uint8Array,
): Buffer {
  const nonce = random(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(context);
  const encrypted = [cipher.update(plain), cipher.final()];
  return Buffer.concat([nonce, ...encrypted, cipher.getAuthTag()]);
}

/** Decrypts the output of `encrypt`. Throws if a single bit of it, the key or the context differs. */
export function decrypt(sealed: Uint8Array, { key, context }: CipherParameters): Buffer {
  if (sealed.length < nonceBytes + tagBytes) throw new TypeError("too short for AES-256-GCM");
  const end = sealed.length - tagBytes;
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(context);
  decipher.setAuthTag(sealed.subarray(end));
  return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, end)), decipher.final()]);
}
