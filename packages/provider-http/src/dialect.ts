import type {
  CompletionEvent,
  CompletionRequest,
  Json,
  ProviderCall,
} from "@tollgate/core/provider";

/** Reads the chunks of one answer as completion events. */
export interface AnswerReader {
  /** Adds the events of one chunk of a stream. `text` is the chunk's JSON. */
  add(chunk: Json, into: CompletionEvent[], text: string): void;
  /** Adds the events of an answer in one body. `text` is the body's JSON. */
  addWhole(body: Json, into: CompletionEvent[], text: string): void;
  /** Whether the model has written anything yet. */
  written(): boolean;
  /** Whether the upstream has given its finish reason. */
  finished(): boolean;
  /** Whether a chunk said that it is the stream's last. */
  ended(): boolean;
  /** Adds the `finish` event. @throws ProviderError if the answer ended without a finish reason */
  finish(into: CompletionEvent[]): void;
}

/** The options of one answer's reader. */
export interface AnswerReaderOptions {
  /** Unique to this answer: generated ids are derived from it. */
  readonly seed: string;
  /** Removed from everything that is passed on. */
  readonly secrets: readonly string[];
}

/** An event whose text is all that differs between most frames of a stream. */
export type TextEvent = Extract<CompletionEvent, { type: "text-delta" | "reasoning-delta" }>;

/** Where the frames of a stream have their text, so that most of them aren't parsed as a whole. */
export interface FrameText {
  /** The name of the member that holds the text of an event. Undefined if its frames must be parsed. */
  memberOf(event: TextEvent): string | undefined;
  /** The member's value in a chunk. Undefined if the chunk has an effect other than this text. */
  textIn(chunk: Json, member: string): Json | undefined;
}

/** How an upstream's error objects are read. */
export interface ErrorFormat {
  /** The member with the error's identifier. */
  readonly codeMember: "code" | "type";
  /** The HTTP statuses of errors that arrive as events, by their identifier. */
  readonly statuses: ReadonlyMap<string, number>;
}

/** The headers of one call, and their secret values. */
export interface SentHeaders {
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
}

/** A serialized request. */
export interface WrittenRequest {
  readonly body: string | Buffer;
  /** The SHA-256 of the body in hex. */
  sha256(): string;
}

/** The parts of a call that its body depends on. */
export type WrittenCall = Pick<
  ProviderCall,
  "model" | "upstreamName" | "request" | "stream" | "continues" | "outputCap"
>;

/** Serializes the requests of one provider. @throws ProviderError for a request that the upstream has no form for */
export type WriteRequest<Call = WrittenCall> = (call: Call) => WrittenRequest;

/** The protocol of an upstream: everything in which HTTP providers differ. */
export interface Dialect {
  readonly writeRequest: WriteRequest;
  readonly headersOf: (credential: string | null, stream: boolean) => SentHeaders;
  /** Headers that a request itself asks for, in addition to those of every call. Null for none. */
  readonly requestHeaders?: (request: CompletionRequest) => Readonly<Record<string, string>> | null;
  readonly createReader: (options: AnswerReaderOptions) => AnswerReader;
  readonly frameText: FrameText;
  readonly errors: ErrorFormat;
  /** How long the upstream asks the client to wait, in milliseconds. `now` is in milliseconds since the epoch. */
  readonly retryAfterMs: (
    headers: Readonly<Record<string, string | readonly string[] | undefined>>,
    now: number,
  ) => number | null;
}
