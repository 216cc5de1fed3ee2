/** That an organization reaches a gateway with its own Gateway API key (section 5.1), and nothing of the key. */
export interface GatewayConnection {
  readonly id: string;
  readonly organizationId: string;
  readonly gateway: string;
  /** Milliseconds since the epoch: when the gateway was first connected, and when its key was last set. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The key-encryption key that its data key is wrapped by. */
  readonly keyId: string;
}

/** A connection and its credential under two locks: ciphertext under a data key, and that key wrapped by another. */
export interface SealedConnection extends GatewayConnection {
  readonly credential: Uint8Array;
  readonly wrappedKey: Uint8Array;
}
