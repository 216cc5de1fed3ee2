/** A stored response. Later requests can retrieve it, continue it, and refer to its items. */
export interface StoredResponse {
  readonly id: string;
  readonly organizationId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly stepId: string;
  readonly sessionId: string;
  readonly dataClass: string;
  /** The response it continues, whose history is also part of this one's. */
  readonly previousResponseId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The response object as JSON in UTF-8, exactly as it was first returned. */
  readonly body: Uint8Array;
  /** Its own input items with their ids, as a JSON array in UTF-8. */
  readonly input: Uint8Array;
}
