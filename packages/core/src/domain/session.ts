/** A persisted transcript of API calls. */
export interface Session {
  readonly id: string;
  readonly organizationId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly source: string;
  /** The chain value of its whole history, in hex, and the number of messages in it. */
  readonly head: string;
  readonly length: number;
  /** The data classes of its content, in the order of their first use. A branch begins with those of its origin. */
  readonly dataClasses: readonly string[];
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The Session it branched from, and the number of messages they share. Set if a named Session's history was rewound. */
  readonly branchedFromSessionId: string | null;
  readonly commonLength: number;
}

/** The facts about a Session that a decision may depend on: its id, and the data classes of its Steps. */
export interface SessionFacts {
  readonly sessionId: string;
  /** In the order of their first use. */
  readonly dataClasses: readonly string[];
}

/**
 * Whether the Session that a Step continues is still the expected one, and has no new data class. Classes are only ever
 * added. If no Session was expected, any is accepted.
 */
export function isExpectedSession(
  expected: SessionFacts | null | undefined,
  found: SessionFacts | null,
): boolean {
  if (expected === undefined) return true;
  return (
    expected?.sessionId === found?.sessionId &&
    expected?.dataClasses.join() === found?.dataClasses.join()
  );
}

/** A part of a Session's transcript: the messages that one Step appended. */
export interface TranscriptPart {
  readonly stepId: string;
  readonly kind: "request" | "reply";
  /** Position in the transcript of its first message, from 0. */
  readonly from: number;
  /** How many messages it appended. */
  readonly count: number;
  /** A JSON array of messages as UTF-8 bytes. Null if only digests are kept, or the content was erased. */
  readonly content: Uint8Array | null;
}
