/** Limits of the server for each connection. Sizes are in bytes, times in milliseconds. */
export interface ServerLimits {
  /** The size of all request headers together. Larger is 431. */
  readonly headerBytes: number;
  /** Header lines of one request. Further lines are ignored. */
  readonly headerCount: number;
  /** The time for a request's headers, and for the whole request, to arrive. Later is 408. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** How long an idle connection stays open. */
  readonly keepAlive: number;
  /** Open connections. Further ones are closed at once. */
  readonly connections: number;
  /** How long a client may leave an answer unread before it is disconnected. */
  readonly writeStall: number;
  /** How long `close` may take by default. The remaining answers are cut off. */
  readonly closing: number;
}

/** The defaults of `limits`. */
export const defaultServerLimits: ServerLimits = {
  headerBytes: 16_384,
  headerCount: 200,
  headersTimeout: 15_000,
  requestTimeout: 120_000,
  keepAlive: 65_000,
  connections: 4_096,
  writeStall: 30_000,
  closing: 25_000,
};
