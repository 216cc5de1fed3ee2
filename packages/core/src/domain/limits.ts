/** Bounds on what one request and one answer may be. Sizes are bytes. */
export interface Limits {
  /** All request headers together. */
  readonly headerBytes: number;
  /** A request body without images, and with them. */
  readonly bodyBytes: number;
  readonly imageBodyBytes: number;
  /** Nesting of the request body, and of JSON Schemas within it. */
  readonly depth: number;
  readonly schemaDepth: number;
  /** A string outside message content. */
  readonly stringBytes: number;
  /** Members of one object. */
  readonly keys: number;
  /** Values of the whole body: objects, arrays and what stands between commas. */
  readonly values: number;
  readonly messages: number;
  readonly tools: number;
  /** The output cap of a model that states none, and the least that budgets lower a cap to. Tokens. */
  readonly maxOutputTokens: number;
  /** The estimate for one image. Tokens. */
  readonly imageTokens: number;
  /** Stretches of text, reasoning or refusal in one answer, and its tool calls; of the latter at most `tools`. */
  readonly answerParts: number;
  /** All that one answer says; its body, where it is not streamed, may have twice as much. */
  readonly answerBytes: number;
  /** One event of an upstream's stream, and all it answers. */
  readonly upstreamEventBytes: number;
  readonly upstreamBytes: number;
  /** Answers that are read on after their clients left: in all, and of one API key. */
  readonly readOn: number;
  readonly readOnPerKey: number;
}

export const defaultLimits: Limits = {
  headerBytes: 16_384,
  bodyBytes: 4_194_304,
  imageBodyBytes: 8_388_608,
  depth: 64,
  schemaDepth: 32,
  stringBytes: 1_048_576,
  keys: 256,
  values: 200_000,
  messages: 2_000,
  tools: 128,
  maxOutputTokens: 4_096,
  imageTokens: 1_600,
  answerParts: 1_024,
  answerBytes: 2_097_152,
  upstreamEventBytes: 1_048_576,
  upstreamBytes: 67_108_864,
  readOn: 64,
  readOnPerKey: 8,
};

/** Bounds on waiting. Milliseconds. */
export interface Deadlines {
  /** The whole answer, retries and fallbacks included. */
  readonly total: number;
  /** From sending a request for a stream to the first event of its answer. */
  readonly firstByte: number;
  /** From sending a request for a plain answer to all of it. */
  readonly plainAnswer: number;
  /** Between two events of a stream. */
  readonly idle: number;
  /** How long a stream's headers wait for the first event. */
  readonly headers: number;
  /** Between two comments that keep a silent stream open. */
  readonly heartbeat: number;
  /** How long a stream is read on after its client left, and how long closing waits for Steps that run. */
  readonly drain: number;
  /** How long closing the gateway may take in all, unless `close` is given another bound. */
  readonly close: number;
}

export const defaultDeadlines: Deadlines = {
  total: 900_000,
  firstByte: 120_000,
  plainAnswer: 600_000,
  idle: 60_000,
  headers: 15_000,
  heartbeat: 15_000,
  drain: 30_000,
  close: 25_000,
};
