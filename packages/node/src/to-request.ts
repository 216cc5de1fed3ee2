import type { IncomingMessage, ServerResponse } from "node:http";
import { FastURL, NodeRequest } from "srvx/node";
import { readWhole } from "./read-whole.ts";

/** What web frameworks leave on a Node request: the URL before their mount prefix went, and a body they have read. */
export interface IncomingRequest extends IncomingMessage {
  /** The target as the client sent it, where `url` lost a mount prefix. */
  readonly originalUrl?: string;
  /** The body's bytes, decompressed; comes before `body`. */
  readonly rawBody?: Uint8Array;
  /** The body as a framework parsed it: a string, bytes or a JSON value. */
  readonly body?: unknown;
}

/**
 * Builds the web `Request` of a Node request: the original URL, the headers as they came, and the body from the
 * socket or, where a framework has read it, from what it left. `signal` aborts when the client hangs up.
 */
export function toRequest(incoming: IncomingRequest, outgoing: ServerResponse): Request {
  const request = new NodeRequest({ req: incoming, res: outgoing });
  const target = incoming.originalUrl ?? incoming.url ?? "/";
  if (target !== incoming.url && target.startsWith("/")) {
    const { protocol, host } = new URL(request.url);
    request._url = new FastURL(`${protocol}//${host}${target}`);
  }
  const body = bodyAlreadyRead(incoming);
  if (body !== undefined) return withBody(request, body, outgoing);
  // What was read and not kept will not come again: the gateway says so instead of waiting for it.
  if (hasBody(incoming) && incoming.readableDidRead)
    Object.defineProperty(request, "bodyUsed", { value: true });
  else readWithoutNativeRequest(request, incoming);
  return request;
}

/** Lets `arrayBuffer` read the socket itself: a native `Request` would cost as much as all the rest of the bridge. */
function readWithoutNativeRequest(request: Request, incoming: IncomingMessage): void {
  const readNative = request.arrayBuffer;
  const arrayBuffer = (): Promise<ArrayBuffer> => {
    const untouched = !request.bodyUsed && !incoming.readableFlowing && hasBody(incoming);
    if (!untouched) return readNative.call(request);
    Object.defineProperty(request, "bodyUsed", { value: true });
    return readWhole(incoming);
  };
  Object.defineProperty(request, "arrayBuffer", { value: arrayBuffer });
}

function hasBody({ method }: IncomingMessage): boolean {
  return method !== "GET" && method !== "HEAD";
}

/** The body a framework has taken off the socket; undefined while it is still there. */
function bodyAlreadyRead(incoming: IncomingRequest): string | Uint8Array<ArrayBuffer> | undefined {
  if (!hasBody(incoming)) return undefined;
  if (incoming.rawBody !== undefined) return new Uint8Array(incoming.rawBody);
  const { body } = incoming;
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return new Uint8Array(body);
  // A parser that did not run can leave an empty object while the bytes still wait on the socket.
  if (body === undefined || !incoming.readableEnded) return undefined;
  return JSON.stringify(body);
}

/** The same request over a body in memory: it has neither the encoding nor the length of what was sent. */
function withBody(
  request: Request,
  body: string | Uint8Array<ArrayBuffer>,
  outgoing: ServerResponse,
): Request {
  const headers = new Headers(request.headers);
  for (const name of ["content-encoding", "content-length", "transfer-encoding"])
    headers.delete(name);
  const gone = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  if (outgoing.destroyed) gone.abort();
  return new Request(request.url, {
    method: request.method,
    headers,
    body,
    signal: gone.signal,
  });
}
