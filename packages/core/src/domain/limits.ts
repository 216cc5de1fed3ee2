/** Limits on one request and one answer. Sizes are in bytes. */
export interface Limits {
  /** All request headers together. */
  readonly headerBytes: number;
  /** A request body without images, and with them. */
  readonly bodyBytes: number;
  readonly imageBodyBytes: number;
  /** Nesting of the request body, of the tool arguments in an answer, and of JSON Schemas within the body. */
  readonly depth: number;
  readonly schemaDepth: number;
  /** A string outside message content. */
  readonly stringBytes: number;
  /** Members of one object, except in the input of a tool. */
  readonly keys: number;
  /** Values in the whole body: objects, arrays and everything between commas. */
  readonly values: number;
  readonly messages: number;
  readonly tools: number;
  /** The output cap for a model without a known one, and the lowest cap that budgets can reduce a call to. In tokens. */
  readonly maxOutputTokens: number;
  /** The estimate for one image. In tokens. Most models take at most the default. */
  readonly imageTokens: number;
  /** Runs of text, reasoning or refusal in one answer, plus its tool calls, of which `tools` is the limit. */
  readonly answerParts: number;
  /** The content of one answer. The body of an answer that isn't streamed may be twice as large. */
  readonly answerBytes: number;
  /** One event of an upstream's stream, and its whole answer. */
  readonly upstreamEventBytes: number;
  readonly upstreamBytes: number;
  /** Answers that Tollgate keeps reading after their clients left: in total, and per API key. */
  readonly drains: number;
  readonly drainsPerKey: number;
  /** Memory for the latest conversations, so that messages that a request repeats aren't processed again. */
  readonly conversationCacheBytes: number;
  /** Requests answered at the same time. Others get 503 `overloaded`. */
  readonly openRequests: number;
  /**
   * The request bodies of all open requests together, and of one key's, with the stored content that they continue or refer
   * to. Embeddings calls add the vectors that they may get. Plain answers over 64 KB and stored responses that are read
   * count until their clients have them. Further requests get 503 `overloaded`.
   */
  readonly bytesInFlight: number;
  readonly bytesInFlightPerKey: number;
  /** Requests that open their Steps at the same time. Others wait for their turn. */
  readonly openings: number;
  /**
   * Requests that wait for their turn to open a Step, and as many that wait to read a stored response. Beyond it, the oldest
   * of the key with the most gets 503 `overloaded`.
   */
  readonly waiting: number;
  /**
   * From this delay of the event loop on, in milliseconds, and from this share of the heap's limit on, keys with more than
   * their fair share in flight get 503 `overloaded`.
   */
  readonly loopDelay: number;
  readonly heapPercent: number;
}

/** The limits of a gateway that configures none. */
export const defaultLimits: Limits = {
  headerBytes: 16_384,
  bodyBytes: 4_194_304,
  imageBodyBytes: 8_388_608,
  depth: 64,
  schemaDepth: 32,
  stringBytes: 1_048_576,
  keys: 256,
  values: 131_072,
  messages: 2_000,
  tools: 128,
  maxOutputTokens: 4_096,
  imageTokens: 4_800,
  answerParts: 1_024,
  answerBytes: 2_097_152,
  upstreamEventBytes: 1_048_576,
  upstreamBytes: 67_108_864,
  drains: 64,
  drainsPerKey: 8,
  conversationCacheBytes: 33_554_432,
  openRequests: 4_096,
  bytesInFlight: 268_435_456,
  bytesInFlightPerKey: 134_217_728,
  openings: 64,
  waiting: 256,
  loopDelay: 60,
  heapPercent: 85,
};

/** Limits on waiting, in milliseconds. */
export interface Deadlines {
  /** The whole answer, retries and fallbacks included. */
  readonly total: number;
  /** How long a request may wait for its turn to open its Step or to read a stored response. */
  readonly turn: number;
  /** Until a provider has read its credential, and then until its request has a connection. */
  readonly connect: number;
  /** From sending a request for a stream to the first event of its answer. */
  readonly firstByte: number;
  /** From sending a request for a plain answer to its end. */
  readonly plainAnswer: number;
  /** Between two events of a stream. */
  readonly idle: number;
  /** How long a stream's headers wait for the first event. */
  readonly headers: number;
  /** Between two comments that keep a silent stream open. */
  readonly heartbeat: number;
  /** How long Tollgate keeps reading a stream after its client left. */
  readonly drain: number;
  /** How long closing the gateway may take in total. The `within` of `close` overrides it. */
  readonly close: number;
}

export const defaultDeadlines: Deadlines = {
  total: 900_000,
  turn: 5_000,
  connect: 10_000,
  firstByte: 120_000,
  plainAnswer: 600_000,
  idle: 60_000,
  headers: 15_000,
  heartbeat: 15_000,
  drain: 30_000,
  close: 25_000,
};
