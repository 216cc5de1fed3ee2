/**
 * Signs the checkpoints of the evidence log with an Ed25519 key: one in this process (`ed25519Signer`), or one that a key
 * management service keeps. While it fails, requests are answered as usual and leaves wait to be sealed.
 */
export interface EvidenceSigner {
  readonly contract: 1;
  /** Names the key and begins the origin of every log: 1 to 100 letters, digits, dots, hyphens, underscores and slashes. */
  readonly name: string;
  /** The public key, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Returns the signature, 64 bytes. May take 5 seconds. Only callers of `evidence.seal` see its error, as `cause`. */
  sign(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** The rule for `name`. */
export const signerNameRule =
  "must be 1 to 100 letters, digits, dots, hyphens, underscores and slashes";

export function isSignerName(name: unknown): name is string {
  return typeof name === "string" && /^[A-Za-z0-9._/-]{1,100}$/.test(name);
}
