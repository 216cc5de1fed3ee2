/** A data key as it is kept, and the key-encryption key that wraps it. */
export interface WrappedKey {
  /** 1 to 255 characters without control characters; kept and shown. */
  readonly keyId: string;
  readonly wrapped: Uint8Array;
}

/**
 * Wraps the keys that customers' credentials are encrypted with (section 5.1), so that the keys which open them need not
 * be where the database is: over a key management service, or an HSM. Each call may take 5 seconds; one that rejects or
 * takes longer makes that one credential unavailable, and its error is shown to nobody.
 */
export interface SecretBox {
  readonly contract: 1;
  /** The id of the key-encryption key that `wrap` uses now: what another one wraps is resealed. Read whenever it counts. */
  readonly current: string;
  /** Wraps a data key of 32 bytes. `context` must be given again to unwrap it: a KMS calls it encryption context or AAD. */
  wrap(dataKey: Uint8Array, context: Uint8Array): WrappedKey | Promise<WrappedKey>;
  /** The data key again. Must throw unless wrap, key-encryption key and context are the same as they were. */
  unwrap(key: WrappedKey, context: Uint8Array): Uint8Array | Promise<Uint8Array>;
}
