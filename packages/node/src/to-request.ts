import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { BridgedRequest, ClientSignal, RequestHeaders } from "@tollgate/core";
import { addChunk } from "@tollgate/core/provider";

/** A Node request, with the original URL and the parsed body that web frameworks add to it. */
export interface IncomingRequest extends IncomingMessage {
  /** The target as the client sent it, if `url` lost a mount prefix. */
  readonly originalUrl?: string;
  /** The decompressed bytes of the body. Takes precedence over `body`. */
  readonly rawBody?: Uint8Array;
  /** The body as a framework parsed it: a string, bytes or a JSON value. */
  readonly body?: unknown;
}

/** A Node request for `gateway.answer`. Everything is created on demand. */
export interface NodeRequest extends BridgedRequest {
  /** Converts it to a web `Request` with its body, for fetch handlers. */
  toWeb(): Request;
}

/**
 * Converts a Node request for `gateway.answer`: with the original URL, the raw headers, and the body from the socket or
 * from the framework that already read it. `payload` is a stream to read instead of the socket, for frameworks whose
 * hooks replace it. `signal` aborts if the client disconnects.
 */
export function toRequest(
  incoming: IncomingRequest,
  outgoing: ServerResponse,
  payload: Readable = incoming,
): NodeRequest {
  return new BridgedNodeRequest(incoming, outgoing, payload);
}

/** Headers that describe the body as sent. They don't apply to a body that a framework has read. */
const bodyHeaders: ReadonlySet<string> = new Set([
  "content-encoding",
  "content-length",
  "transfer-encoding",
]);

class BridgedNodeRequest implements NodeRequest {
  readonly method: string;
  readonly headers: RawHeaders;
  readonly #incoming: IncomingRequest;
  readonly #outgoing: ServerResponse;
  /** The source of the body; null if the method has no body. */
  readonly #source: Readable | Buffer | null;
  #used: boolean;
  #stream: ReadableStream<Uint8Array> | null = null;
  #signal: ClientSignal | null = null;

  constructor(incoming: IncomingRequest, outgoing: ServerResponse, payload: Readable) {
    this.method = incoming.method ?? "GET";
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    const hasBody = this.method !== "GET" && this.method !== "HEAD";
    this.#source = hasBody ? (bodyAlreadyRead(incoming) ?? payload) : null;
    // A body that was read and not kept doesn't arrive again: report it instead of waiting.
    this.#used = this.#source instanceof Readable && this.#source.readableDidRead;
    this.headers = new RawHeaders(
      incoming.rawHeaders,
      this.#source === null || this.#source === incoming ? null : bodyHeaders,
    );
  }

  get url(): string {
    const target = this.#incoming.originalUrl ?? this.#incoming.url ?? "/";
    // Targets such as `*`, which are neither a path nor a URL, count as `/`.
    return target.startsWith("/") || URL.canParse(target) ? target : "/";
  }

  get remoteAddress(): string | undefined {
    return this.#incoming.socket.remoteAddress;
  }

  get headerBytes(): number {
    return this.headers.bytes();
  }

  get signal(): ClientSignal {
    this.#signal ??= new DisconnectSignal(this.#outgoing);
    return this.#signal;
  }

  get bodyUsed(): boolean {
    return this.#used;
  }

  get body(): ReadableStream<Uint8Array> | null {
    if (this.#source !== null && this.#stream === null) {
      this.#takeBody();
      this.#stream = streamOf(this.#source);
    }
    return this.#stream;
  }

  readBody(onBody: (bytes: Uint8Array) => void, onError: (thrown: unknown) => void): void {
    const source = this.#source ?? Buffer.alloc(0);
    if (this.#used) onError(alreadyRead());
    else if (source instanceof Readable) readFully(source, onBody, onError);
    else onBody(source);
    this.#used = this.#source !== null;
  }

  toHead(): Request {
    return this.#toRequest(null);
  }

  toWeb(): Request {
    return this.#toRequest(this.#used ? null : this.body);
  }

  #toRequest(body: ReadableStream<Uint8Array> | null): Request {
    const { method } = this;
    const signal = abortSignalOf(this.signal);
    const headers = new Headers();
    for (const [name, value] of this.headers) headers.append(name, value);
    return new Request(this.#webUrl(), { method, signal, headers, body, duplex: "half" });
  }

  #takeBody(): void {
    if (this.#used) throw alreadyRead();
    this.#used = true;
  }

  /** Returns an absolute URL without credentials, as a `Request` requires. */
  #webUrl(): URL {
    const { url } = this;
    const origin = url.startsWith("/") ? originOf(this.#incoming, this.headers) : "";
    const absolute = new URL(origin + url);
    absolute.username = "";
    absolute.password = "";
    return absolute;
  }
}

function alreadyRead(): TypeError {
  return new TypeError("The request's body has been read already.");
}

function streamOf(source: Readable | Buffer): ReadableStream<Uint8Array> {
  return ReadableStream.from<Uint8Array>(source instanceof Readable ? chunksOf(source) : [source]);
}

/**
 * A reader that stops early must not close the connection, because the answer is still sent on it. The rest of the body
 * is discarded, as Node does with unread bodies: the next request on the connection follows it.
 */
async function* chunksOf(source: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of source.iterator({ destroyOnReturn: false }))
      yield bytesOf(chunk, source);
  } finally {
    source.resume();
  }
}

/** Returns the body that a framework has read, or undefined if it is still on the socket. */
function bodyAlreadyRead(incoming: IncomingRequest): Buffer | undefined {
  if (incoming.rawBody !== undefined) return Buffer.from(incoming.rawBody);
  const { body } = incoming;
  if (typeof body === "string") return Buffer.from(body);
  if (body instanceof Uint8Array) return Buffer.from(body);
  // A body parser that skipped the request can leave an empty object while the body is still on the socket.
  if (body === undefined || !incoming.readableEnded) return undefined;
  return Buffer.from(JSON.stringify(body));
}

const plainHost =
  /^(?:\[[A-Fa-f0-9:.]{2,64}\]|[A-Za-z0-9_-](?:[A-Za-z0-9_.-]{0,254}))(?::\d{1,5})?$/;

/** Returns the origin of the request. An invalid host becomes `localhost`. */
function originOf(incoming: IncomingRequest, headers: RequestHeaders): string {
  const host = headers.get("host") ?? headers.get(":authority") ?? "";
  const scheme = "encrypted" in incoming.socket ? "https" : "http";
  const origin = `${scheme}://${host}`;
  return plainHost.test(host) && URL.canParse(origin) ? origin : `${scheme}://localhost`;
}

/** Aborts if the client disconnects before its answer is complete. An AbortController is several times slower. */
class DisconnectSignal implements ClientSignal {
  aborted = false;
  #listeners: readonly (() => void)[] = [];

  constructor(outgoing: ServerResponse) {
    const onClose = (): void => {
      if (!outgoing.writableEnded) this.#abort();
    };
    if (outgoing.destroyed) onClose();
    else outgoing.on("close", onClose);
  }

  get reason(): unknown {
    return this.aborted ? new DOMException("The client disconnected.", "AbortError") : undefined;
  }

  addEventListener(_type: "abort", run: () => void): void {
    // A spread would leave room for 16 more.
    this.#listeners = this.#listeners.concat(run);
  }

  removeEventListener(_type: "abort", run: () => void): void {
    this.#listeners = this.#listeners.filter((listener) => listener !== run);
  }

  #abort(): void {
    this.aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const run of listeners) run();
  }
}

/** A web `Request` only accepts an AbortSignal. */
function abortSignalOf(client: ClientSignal): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort(client.reason);
  if (client.aborted) abort();
  else client.addEventListener("abort", abort, { once: true });
  return controller.signal;
}

/** Some releases of Node drop further lines by default, such as one that a proxy appended. */
const nodesMostLines = 2_000;

/** The raw headers. Node's own parsed headers drop repeated ones. */
class RawHeaders implements RequestHeaders {
  readonly #raw: readonly string[];
  readonly #hidden: ReadonlySet<string> | null;

  constructor(raw: readonly string[], hidden: ReadonlySet<string> | null) {
    this.#raw = raw;
    this.#hidden = hidden;
  }

  get(name: string): string | null {
    const wanted = name.toLowerCase();
    if (this.#hidden?.has(wanted)) return null;
    let found: string | null = null;
    for (let at = 0; at + 1 < this.#raw.length; at += 2) {
      const written = this.#raw[at] ?? "";
      if (written.length !== wanted.length || written.toLowerCase() !== wanted) continue;
      const value = this.#raw[at + 1] ?? "";
      found = found === null ? value : `${found}, ${value}`;
    }
    return found;
  }

  /** Counts the bytes on the wire: name, colon, space, value, line end. Infinity if lines may be missing. */
  bytes(): number {
    if (this.#raw.length >= 2 * nodesMostLines) return Number.POSITIVE_INFINITY;
    let bytes = 0;
    for (let at = 0; at + 1 < this.#raw.length; at += 2) {
      const name = this.#raw[at] ?? "";
      if (this.#isHidden(name)) continue;
      bytes += name.length + (this.#raw[at + 1] ?? "").length + 4;
    }
    return bytes;
  }

  *[Symbol.iterator](): Generator<readonly [string, string]> {
    for (let at = 0; at + 1 < this.#raw.length; at += 2) {
      const name = this.#raw[at] ?? "";
      if (!this.#isHidden(name)) yield [name.toLowerCase(), this.#raw[at + 1] ?? ""];
    }
  }

  #isHidden(name: string): boolean {
    return name.startsWith(":") || (this.#hidden?.has(name.toLowerCase()) ?? false);
  }
}

/** A body that is being read, and who waits for it. */
interface BodyReading {
  readonly chunks: Uint8Array[];
  readonly onBody: (bytes: Uint8Array) => void;
  readonly onError: (thrown: unknown) => void;
}

/** Reads a body from the socket in one piece. Fails if the client disconnects before its end. */
function readFully(
  incoming: Readable,
  onBody: (bytes: Uint8Array) => void,
  onError: (thrown: unknown) => void,
): void {
  // The request outlives its body by far, so its listeners must not keep the body or its readers.
  let reading: BodyReading | null = { chunks: [], onBody, onError };
  const over = (): BodyReading | null => {
    const read = reading;
    reading = null;
    return read;
  };
  const onLeft = (): void =>
    over()?.onError(
      incoming.errored ?? new Error("The client disconnected before the end of its request."),
    );
  const onEnd = (): void => {
    const read = over();
    read?.onBody(concatenate(read.chunks));
  };
  if (incoming.destroyed || incoming.readableEnded) {
    onLeft();
    return;
  }
  incoming
    .on("data", (chunk: Uint8Array | string) => {
      if (reading !== null) addChunk(reading.chunks, bytesOf(chunk, incoming));
    })
    // Later events have no effect. Keeping the listeners is cheaper than removing them.
    .on("end", onEnd)
    .on("error", onLeft)
    .on("close", onLeft);
  // A framework may have paused it.
  incoming.resume();
}

/** Returns a chunk as bytes. It can be text if a framework has set an encoding or replaced the stream. */
function bytesOf(chunk: Uint8Array | string, from: Readable): Uint8Array {
  return typeof chunk === "string" ? Buffer.from(chunk, from.readableEncoding ?? "utf8") : chunk;
}

function concatenate(chunks: readonly Uint8Array[]): Uint8Array {
  const [only, ...others] = chunks;
  return only !== undefined && others.length === 0 ? only : Buffer.concat(chunks);
}
