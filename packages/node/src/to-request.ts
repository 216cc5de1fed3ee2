import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { BridgedRequest, ClientSignal, RequestHeaders } from "@tollgate/core";

/** What web frameworks leave on a Node request: the URL before their mount prefix went, and a body they have read. */
export interface IncomingRequest extends IncomingMessage {
  /** The target as the client sent it, where `url` lost a mount prefix. */
  readonly originalUrl?: string;
  /** The body's bytes, decompressed; comes before `body`. */
  readonly rawBody?: Uint8Array;
  /** The body as a framework parsed it: a string, bytes or a JSON value. */
  readonly body?: unknown;
}

/** A Node request in the form that `gateway.answer` takes. Nothing is built before it is asked for. */
export interface NodeRequest extends BridgedRequest {
  /** The web `Request` of it, with its body: what fetch handlers take. */
  toWeb(): Request;
}

/**
 * Bridges a Node request to `gateway.answer`: the original URL, the headers as they came, and the body from the socket
 * or, where a framework has read it, from what it left. `payload` is a stream to read instead of the socket, as a
 * framework's hook may put in its place. `signal` aborts when the client hangs up.
 */
export function toRequest(
  incoming: IncomingRequest,
  outgoing: ServerResponse,
  payload: Readable = incoming,
): NodeRequest {
  return new BridgedNodeRequest(incoming, outgoing, payload);
}

/** Headers that describe the body as it was sent, not as a framework leaves it. */
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
  /** Where the body comes from; null for a method that has none. */
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
    // What was read and not kept will not come again: the gateway says so instead of waiting for it.
    this.#used = this.#source instanceof Readable && this.#source.readableDidRead;
    this.headers = new RawHeaders(
      incoming.rawHeaders,
      this.#source === null || this.#source === incoming ? null : bodyHeaders,
    );
  }

  get url(): string {
    const target = this.#incoming.originalUrl ?? this.#incoming.url ?? "/";
    // What is neither a path nor a URL, such as `*`, is nowhere.
    return target.startsWith("/") || URL.canParse(target) ? target : "/";
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

  /** A `Request` has an absolute URL, without credentials. */
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
 * A reader that stops early must not cut the connection, on which the answer still goes out. What it leaves is
 * discarded, as Node discards a body that nobody reads: the next request on the connection comes after it.
 */
async function* chunksOf(source: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of source.iterator({ destroyOnReturn: false }))
      yield bytesOf(chunk, source);
  } finally {
    source.resume();
  }
}

/** A body that a framework has taken off the socket; undefined while it is still there. */
function bodyAlreadyRead(incoming: IncomingRequest): Buffer | undefined {
  if (incoming.rawBody !== undefined) return Buffer.from(incoming.rawBody);
  const { body } = incoming;
  if (typeof body === "string") return Buffer.from(body);
  if (body instanceof Uint8Array) return Buffer.from(body);
  // A parser that did not run can leave an empty object while the bytes still wait on the socket.
  if (body === undefined || !incoming.readableEnded) return undefined;
  return Buffer.from(JSON.stringify(body));
}

const plainHost =
  /^(?:\[[A-Fa-f0-9:.]{2,64}\]|[A-Za-z0-9_-](?:[A-Za-z0-9_.-]{0,254}))(?::\d{1,5})?$/;

/** The origin a client asked for, as far as it can be believed: with a host that is none, `http://localhost`. */
function originOf(incoming: IncomingRequest, headers: RequestHeaders): string {
  const host = headers.get("host") ?? headers.get(":authority") ?? "";
  const scheme = "encrypted" in incoming.socket ? "https" : "http";
  const origin = `${scheme}://${host}`;
  return plainHost.test(host) && URL.canParse(origin) ? origin : `${scheme}://localhost`;
}

/** Aborts when the client leaves before its answer is complete. An AbortController costs several times as much. */
class DisconnectSignal implements ClientSignal {
  aborted = false;
  #listeners: readonly (() => void)[] = [];

  constructor(outgoing: ServerResponse) {
    const onClose = (): void => {
      if (!outgoing.writableEnded) this.#abort();
    };
    if (outgoing.destroyed) onClose();
    else outgoing.once("close", onClose);
  }

  get reason(): unknown {
    return this.aborted ? new DOMException("The client left.", "AbortError") : undefined;
  }

  addEventListener(_type: "abort", run: () => void): void {
    this.#listeners = [...this.#listeners, run];
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

/** A web `Request` takes no other signal. */
function abortSignalOf(client: ClientSignal): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort(client.reason);
  if (client.aborted) abort();
  else client.addEventListener("abort", abort, { once: true });
  return controller.signal;
}

/** Headers as they came, read where they are: Node's own view of them drops what is repeated. */
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

  /** Counted as they travel: name, colon, space, value, line end. */
  bytes(): number {
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

/** All of a body that is still on the socket, in one piece. It fails where the client leaves before its end. */
function readFully(
  incoming: Readable,
  onBody: (bytes: Uint8Array) => void,
  onError: (thrown: unknown) => void,
): void {
  let chunks: Uint8Array[] | null = [];
  const onLeft = (): void => {
    if (chunks === null) return;
    chunks = null;
    onError(incoming.errored ?? new Error("The client left before the end of its request."));
  };
  const onEnd = (): void => {
    if (chunks === null) return;
    const whole = concatenate(chunks);
    chunks = null;
    onBody(whole);
  };
  if (incoming.destroyed || incoming.readableEnded) {
    onLeft();
    return;
  }
  incoming
    .on("data", (chunk: Uint8Array | string) => void chunks?.push(bytesOf(chunk, incoming)))
    // What comes after the end changes nothing: it costs less than to take all of it off again.
    .on("end", onEnd)
    .on("error", onLeft)
    .on("close", onLeft);
  // A framework may have paused it until it is wanted.
  incoming.resume();
}

/** A chunk of a body as bytes: where a framework has set an encoding, or put a stream of its own, it can be text. */
function bytesOf(chunk: Uint8Array | string, from: Readable): Uint8Array {
  return typeof chunk === "string" ? Buffer.from(chunk, from.readableEncoding ?? "utf8") : chunk;
}

function concatenate(chunks: readonly Uint8Array[]): Uint8Array {
  const [only, ...others] = chunks;
  return only !== undefined && others.length === 0 ? only : Buffer.concat(chunks);
}
