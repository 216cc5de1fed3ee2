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

/**
 * Cuts a JSON array in UTF-8 after its first `count` messages, byte for byte: the messages that a branch shares with the
 * part it diverged in. Returns the whole array if it has no more messages.
 */
export function messagePrefix(content: Uint8Array, count: number): Uint8Array {
  const end = count === 0 ? content.indexOf(0x5b) + 1 : endOfMessage(content, count);
  if (end === null) return content;
  return Buffer.concat([content.subarray(0, end), Uint8Array.of(0x5d)]);
}

/** Where message number `count` ends; null if no further message follows it. */
function endOfMessage(content: Uint8Array, count: number): number | null {
  let depth = 0;
  let seen = 0;
  for (let at = 0; at < content.length; at++) {
    const byte = content[at] ?? 0;
    if (byte === quote) at = endOfString(content, at);
    else if (openers.has(byte)) depth++;
    else if (closers.has(byte)) depth--;
    else if (byte === comma && depth === 1 && ++seen === count) return at;
  }
  return null;
}

/** The position of the closing quote of the string that starts at `start`. */
function endOfString(content: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < content.length && content[at] !== quote) at += content[at] === backslash ? 2 : 1;
  return at;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openers: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const closers: ReadonlySet<number> = new Set([0x5d, 0x7d]);
