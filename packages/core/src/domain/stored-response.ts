/** A stored response (section 2.7): what later requests can retrieve, continue from, and refer to items of. */
export interface StoredResponse {
  readonly id: string;
  readonly organizationId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly stepId: string;
  readonly sessionId: string;
  readonly dataClass: string;
  /** The response it continues; its history is this one's history too. */
  readonly previousResponseId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The response object as JSON in UTF-8: exactly what the creation returned. */
  readonly body: Uint8Array;
  /** Its own input items with their ids, as a JSON array in UTF-8. */
  readonly input: Uint8Array;
  /** The messages it adds to the conversation, input then output, as a JSON array in UTF-8. */
  readonly messages: Uint8Array;
}
