/** A wrapped data key, and the id of the key-encryption key that wraps it. */
export interface WrappedKey {
  /** 1 to 255 characters without control characters. It is stored and shown. */
  readonly keyId: string;
  readonly wrapped: Uint8Array;
}

/**
 * Wraps the data keys that encrypt customers' credentials, for example with a key management service or an
 * HSM, so that the key-encryption keys don't have to be kept where the database is. Each call may take 5 seconds. If it
 * rejects or takes longer, only that credential is unavailable. Its error isn't shown to anyone.
 */
export interface SecretBox {
  readonly contract: 1;
  /** The id of the key-encryption key that `wrap` uses now. When it changes, other keys' data keys are wrapped again. */
  readonly current: string;
  /** Wraps a data key of 32 bytes. Unwrapping needs the same `context`, which a KMS calls encryption context or AAD. */
  wrap(dataKey: Uint8Array, context: Uint8Array): WrappedKey | Promise<WrappedKey>;
  /** Returns the data key. Must throw unless the wrapped key, the key-encryption key and the context are all unchanged. */
  unwrap(key: WrappedKey, context: Uint8Array): Uint8Array | Promise<Uint8Array>;
}
