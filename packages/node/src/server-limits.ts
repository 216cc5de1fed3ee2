/** Bounds of the server on what comes over a connection. Sizes are bytes, times milliseconds. */
export interface ServerLimits {
  /** All request headers together; more is 431. */
  readonly headerBytes: number;
  /** Header lines of one request; what comes after is not read. */
  readonly headerCount: number;
  /** For a request's headers to arrive, and for the whole request; later is 408. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** How long an idle connection stays open. */
  readonly keepAlive: number;
  /** Open connections; what comes beyond is closed at once. */
  readonly connections: number;
  /** How long a client may leave an answer unread. */
  readonly writeStall: number;
  /** How long `close` may take, unless it is given another bound; what still runs then is cut. */
  readonly closing: number;
}

/** What applies where `limits` does not say otherwise. */
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
