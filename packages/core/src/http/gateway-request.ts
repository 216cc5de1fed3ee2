import type { ClientSignal } from "../domain/client-signal.ts";

/** The request headers that the gateway reads. A web `Headers` is one. */
export interface RequestHeaders {
  /** The value of a header, whatever the case of its name. Repeated headers are joined with `, `. Null without one. */
  get(name: string): string | null;
  [Symbol.iterator](): Iterator<readonly [name: string, value: string]>;
}

/**
 * A request from a server without web `Request`s, with only the members that the gateway reads. A binding passes it to
 * `gateway.answer`.
 */
export interface BridgedRequest {
  readonly method: string;
  /** An absolute URL, or one that starts with its path. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** The address of the connection's other end. Absent if the server doesn't know it. */
  readonly remoteAddress?: string | undefined;
  /** The bytes of all headers as sent: name, colon, space, value, line end. */
  readonly headerBytes: number;
  /** Aborts when the client hangs up. */
  readonly signal: ClientSignal;
  /** Whether the body has already been read. */
  readonly bodyUsed: boolean;
  /** The body as a stream, for requests without a `content-length`; null without a body. */
  readonly body: ReadableStream<Uint8Array> | null;
  /** Reads the whole body, once. Fails if the client leaves before the end. */
  readBody(taken: (bytes: Uint8Array) => void, failed: (thrown: unknown) => void): void;
  /** A web `Request` with the same head and no body, for the host's `authenticate`. */
  toHead(): Request;
}

/** The requests that `gateway.answer` takes. */
export type GatewayRequest = Request | BridgedRequest;
