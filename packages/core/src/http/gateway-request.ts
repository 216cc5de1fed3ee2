import type { ClientSignal } from "../domain/client-signal.ts";

/** What is read of the headers of a request. A web `Headers` is one. */
export interface RequestHeaders {
  /** The value under a name in any case; those of a repeated header as one list, joined with `, `. Null without one. */
  get(name: string): string | null;
  [Symbol.iterator](): Iterator<readonly [name: string, value: string]>;
}

/**
 * A request of a server that has no web `Request` at hand: what the gateway reads of it, and nothing else. A binding
 * hands it to `gateway.answer`.
 */
export interface BridgedRequest {
  readonly method: string;
  /** Absolute, or from the path on. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** How long its headers are as they travel: name, colon, space, value, line end. Bytes. */
  readonly headerBytes: number;
  /** Aborts when the client hangs up. */
  readonly signal: ClientSignal;
  /** Whether the body was read before, and is gone. */
  readonly bodyUsed: boolean;
  /** The body as a stream, for one that does not announce its length; null where there is none. */
  readonly body: ReadableStream<Uint8Array> | null;
  /** Reads the whole body, once. It fails where the client leaves before its end. */
  readBody(taken: (bytes: Uint8Array) => void, failed: (thrown: unknown) => void): void;
  /** A web `Request` with the same head and no body: what the host's `authenticate` is asked with. */
  toHead(): Request;
}

/** What `gateway.answer` takes. */
export type GatewayRequest = Request | BridgedRequest;
