/** The fact that an organization reaches a gateway with its own Gateway API key, without the key itself. */
export interface GatewayConnection {
  readonly id: string;
  readonly organizationId: string;
  readonly gateway: string;
  /** Milliseconds since the epoch: when the gateway was first connected, and when its key was last set. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The id of the key-encryption key that wraps its data key. */
  readonly keyId: string;
}

/** A connection and its credential, which a data key encrypts. That data key is wrapped by the key-encryption key. */
export interface SealedConnection extends GatewayConnection {
  readonly credential: Uint8Array;
  readonly wrappedKey: Uint8Array;
}
