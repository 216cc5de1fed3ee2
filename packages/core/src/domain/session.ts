/** A persisted transcript of API calls (section 2.8). */
export interface Session {
  readonly id: string;
  readonly organizationId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly source: string;
  /** The chain value of its whole history, in hex, and the number of messages in it. */
  readonly head: string;
  readonly length: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Set when a named Session's history was rewound: the Session it diverged from, and the messages they share. */
  readonly branchedFromSessionId: string | null;
  readonly commonLength: number;
}

/** A stretch of a Session's transcript: what one Step appended. */
export interface TranscriptPart {
  readonly stepId: string;
  readonly kind: "request" | "reply";
  /** Position in the transcript of its first message, from 0. */
  readonly from: number;
  /** How many messages it appended. */
  readonly count: number;
  /** A JSON array of messages as UTF-8 bytes; null when only digests are kept or the content was erased. */
  readonly content: Uint8Array | null;
}
