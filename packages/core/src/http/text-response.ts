type Reading =
  | "body"
  | "bodyUsed"
  | "text"
  | "json"
  | "arrayBuffer"
  | "bytes"
  | "blob"
  | "formData"
  | "clone";

const Unread: new (body: null, init: ResponseInit) => Omit<Response, Reading> = Response;

/**
 * A `Response` with a text as its body. A plain one creates a stream for every text, which takes longer than settling a
 * Step. This one creates a stream only if the body is read in another way than as text
 * or JSON.
 */
class LazyTextResponse extends Unread implements Response {
  readonly #text: string;
  readonly #init: ResponseInit;
  #isRead = false;
  #streamed: Response | null = null;

  constructor(text: string, init: ResponseInit) {
    super(null, init);
    this.#text = text;
    this.#init = init;
  }

  get body() {
    return this.#withStream().body;
  }

  get bodyUsed(): boolean {
    return this.#streamed === null ? this.#isRead : this.#streamed.bodyUsed;
  }

  async text(): Promise<string> {
    if (this.#streamed !== null) return this.#streamed.text();
    if (this.#isRead) throw new TypeError("Body is unusable: Body has already been read");
    this.#isRead = true;
    return this.#text;
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }

  async arrayBuffer() {
    return this.#withStream().arrayBuffer();
  }

  async bytes() {
    return new Uint8Array(await this.arrayBuffer());
  }

  async blob() {
    return this.#withStream().blob();
  }

  async formData() {
    return this.#withStream().formData();
  }

  clone() {
    return this.#withStream().clone();
  }

  #withStream(): Response {
    if (this.#streamed === null) {
      this.#streamed = new Response(this.#text, { ...this.#init, headers: this.headers });
      // Reads it, so that it can't be read again.
      if (this.#isRead) void this.#streamed.text();
    }
    return this.#streamed;
  }
}

/** Bun and Deno send a `Response` from its internal fields, so they need a plain one. */
const isNode = !("Bun" in globalThis || "Deno" in globalThis);

/** A `Response` with this text as its body. */
export const TextResponse: new (text: string, init: ResponseInit) => Response = isNode
  ? LazyTextResponse
  : Response;
