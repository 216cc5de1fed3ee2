import { isUtf8 } from "node:buffer";
import {
  type AnswerSink,
  addChunk,
  type Clock,
  type CompletionEvent,
  isLarge,
  isTooMuchJson,
  type Json,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
  yieldToEventLoop,
} from "@tollgate/core/provider";
import type { Pool } from "undici";
import { toAsyncIterator } from "./async-iterator.ts";
import type { AnswerReader, Dialect, WrittenRequest } from "./dialect.ts";
import { errorAnswer } from "./error-answer.ts";
import { EventStream } from "./event-stream.ts";
import { type AnswerHead, type AnswerReceiver, Exchange } from "./exchange.ts";
import { invalidAnswer, misconfigured, tooManyValues } from "./failures.ts";

type Credential = string | null;

/** An upstream, with everything that its calls share. */
export interface Upstream {
  readonly pool: Pick<Pool, "dispatch">;
  readonly host: string;
  /** The path that calls are sent to. */
  readonly path: string;
  readonly dialect: Dialect;
  readonly credentialOf: (
    call: Pick<ProviderCall, "credential">,
  ) => Credential | Promise<Credential>;
  /** Whether calls have the `traceparent` header. */
  readonly traces: boolean;
  readonly clock: Clock;
}

// How long to wait for usage after the model stopped, and for the body of an error after its status.
const gracePeriodMs = 2_000;
const maxErrorBytes = 65_536;
const maxEventsPerTurn = 256;

/** The answer to one call. The call is sent when the answer is subscribed to. `upstream` is null if it is misconfigured. */
export class UpstreamAnswer implements ProviderAnswer {
  readonly #upstream: Upstream | null;
  readonly #call: ProviderCall;

  constructor(upstream: Upstream | null, call: ProviderCall) {
    this.#upstream = upstream;
    this.#call = call;
  }

  subscribe(sink: AnswerSink): () => void {
    if (this.#upstream === null) throw misconfigured();
    const call = new Call(this.#upstream, this.#call, sink);
    call.begin();
    return () => call.cancel();
  }

  [Symbol.asyncIterator](): AsyncIterator<readonly CompletionEvent[], undefined> {
    return toAsyncIterator((sink) => this.subscribe(sink), this.#call.signal);
  }
}

/** Sends one call and passes its answer to the sink, one batch per read. */
class Call implements AnswerReceiver {
  readonly #upstream: Upstream;
  readonly #call: ProviderCall;
  readonly #sink: AnswerSink;
  #exchange: Exchange | null = null;
  #seed = "";
  /** Removed from everything that is passed on. */
  #secrets: readonly string[] = [];
  #head: AnswerHead | null = null;
  #answer: AnswerReader | null = null;
  /** Null unless the answer is streamed. */
  #stream: EventStream | null = null;
  /** The chunks so far, if the answer is not streamed. */
  #chunks: Buffer[] = [];
  #bytes = 0;
  #cancelGracePeriod: (() => void) | null = null;
  #isOver = false;

  constructor(upstream: Upstream, call: ProviderCall, sink: AnswerSink) {
    this.#upstream = upstream;
    this.#call = call;
    this.#sink = sink;
  }

  begin(): void {
    try {
      const credential = this.#upstream.credentialOf(this.#call);
      if (credential instanceof Promise)
        credential
          .then((resolved) => this.#prepare(resolved))
          .catch((thrown) => this.failed(thrown));
      else this.#prepare(credential);
    } catch (thrown) {
      this.failed(thrown);
    }
  }

  /** Passes on everything already read, because its tokens count, and closes the connection. */
  cancel(): void {
    if (!this.#isOver) this.#exchange?.flush();
    if (!this.#isOver) this.#close("incomplete");
  }

  #prepare(credential: Credential): void {
    if (this.#isOver) return;
    const written = this.#upstream.dialect.writeRequest(this.#call);
    if (isLarge(written.body.length)) void this.#sendLarge(written, credential);
    else this.#announceAndSend(written.body, written.sha256(), credential);
  }

  async #sendLarge({ body, sha256 }: WrittenRequest, credential: Credential): Promise<void> {
    await yieldToEventLoop();
    const bodySha256 = sha256();
    await yieldToEventLoop();
    if (!this.#isOver) this.#announceAndSend(body, bodySha256, credential);
  }

  #announceAndSend(body: WrittenRequest["body"], bodySha256: string, credential: Credential): void {
    const { host } = this.#upstream;
    this.#seed = bodySha256;
    const room = this.#sink.events([{ type: "request-sent", host, bodySha256 }]);
    if (room === null) this.#send(body, credential);
    else void room.then(() => this.#send(body, credential));
  }

  #send(body: WrittenRequest["body"], credential: Credential): void {
    if (this.#isOver) return;
    const { pool, path, dialect, traces, clock } = this.#upstream;
    const { headers: common, secrets } = dialect.headersOf(credential, this.#call.stream);
    this.#secrets = secrets;
    const { connectWithin, limits, traceparent } = this.#call;
    const own = dialect.requestHeaders?.(this.#call.request) ?? null;
    const asked = own === null ? common : { ...common, ...own };
    const headers = traces && traceparent !== null ? { ...asked, traceparent } : asked;
    const { totalBytes } = limits;
    const options = { path, headers, body, totalBytes, connectWithin, clock };
    this.#exchange = new Exchange(pool, options, this);
  }

  /** The status and the content type determine how the answer is read. */
  head(head: AnswerHead): void {
    this.#head = head;
    try {
      if (head.status === 200) this.#openAnswer(head);
      else this.#openError(head);
    } catch (thrown) {
      this.failed(thrown);
    }
  }

  #openAnswer({ headers }: AnswerHead): void {
    const { "content-type": type, "content-encoding": encoding } = headers;
    // Tollgate requests uncompressed answers: a few compressed bytes can expand to gigabytes.
    if (encoding !== undefined && encoding !== "identity")
      throw invalidAnswer("unexpected_encoding", "The provider's answer is compressed.");
    const secrets = this.#secrets;
    const { eventBytes } = this.#call.limits;
    const { dialect } = this.#upstream;
    this.#answer = dialect.createReader({ seed: this.#seed, secrets });
    const mediaType = typeof type === "string" ? type.split(";", 1)[0]?.trim().toLowerCase() : "";
    if (mediaType === "text/event-stream")
      this.#stream = new EventStream(this.#answer, { eventBytes, secrets, dialect });
    else if (mediaType !== "application/json")
      throw invalidAnswer("unexpected_content_type", "The provider's answer is not a completion.");
  }

  #openError({ status }: AnswerHead): void {
    if (status >= 300 && status < 400)
      throw new ProviderError(
        "The provider answered with a redirect. Tollgate doesn't follow redirects.",
        {
          reason: "redirect_refused",
          delivery: "answered",
          status,
        },
      );
    if (status < 300)
      throw invalidAnswer(
        `status_${status}`,
        `The provider answered with status ${status}.`,
        status,
      );
    this.#startGracePeriod();
  }

  data(chunks: readonly Buffer[]): void {
    if (this.#stream === null || this.#answer === null) this.#gather(chunks);
    else this.#readStream(chunks, this.#stream, this.#answer);
  }

  #gather(chunks: readonly Buffer[]): void {
    for (const chunk of chunks) {
      this.#bytes += chunk.length;
      addChunk(this.#chunks, chunk);
    }
    if (this.#answer === null) {
      if (this.#bytes > maxErrorBytes) this.#failWithStatus(null);
    } else if (this.#bytes > this.#call.limits.bodyBytes)
      this.failed(invalidAnswer("answer_too_large", "The provider's answer is too large."));
  }

  #readStream(chunks: readonly Buffer[], stream: EventStream, answer: AnswerReader): void {
    const events: CompletionEvent[] = [];
    const failure = feedAll(chunks, stream, events);
    // While the client has no room, this closure is kept, so it must not contain the chunks.
    this.#deliver(events, () => {
      if (failure !== null) this.failed(failure.thrown);
      else if (stream.done()) this.#finish(answer);
      else if (answer.finished()) this.#startGracePeriod();
    });
  }

  end(): void {
    if (this.#answer === null) this.#failWithStatus(bodyIn(this.#chunks));
    else if (this.#stream === null) this.#readWhole(this.#answer);
    else this.#finish(this.#answer);
  }

  /** If the body of an HTTP error breaks off, its status is still the failure. */
  failed(thrown: unknown): void {
    if (this.#isOver) return;
    const hasStatus = this.#head !== null && this.#head.status >= 400 && this.#answer === null;
    this.#close("incomplete");
    this.#sink.failed(hasStatus ? this.#statusError(bodyIn(this.#chunks)) : thrown);
  }

  #readWhole(answer: AnswerReader): void {
    const events: CompletionEvent[] = [];
    const [first] = this.#chunks;
    const bytes = first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    if (isLarge(bytes.length))
      readLargeAnswer(bytes, answer, events).then(
        () => this.#deliverInTurns(events),
        (thrown) => this.failed(thrown),
      );
    else {
      const failure = attempt(() => readPlainAnswer(bytes, answer, events));
      if (failure === null) this.#deliverAndComplete(events);
      else this.failed(failure.thrown);
    }
  }

  #deliverAndComplete(events: readonly CompletionEvent[]): void {
    this.#deliver(events, () => this.#complete());
  }

  /** Delivers the many events of a large answer a few at a time, because taking them takes time too. */
  #deliverInTurns(events: readonly CompletionEvent[], from = 0): void {
    const to = from + maxEventsPerTurn;
    this.#deliver(events.slice(from, to), () => {
      if (to >= events.length) this.#complete();
      else void yieldToEventLoop().then(() => this.#deliverInTurns(events, to));
    });
  }

  #finish(answer: AnswerReader): void {
    const last: CompletionEvent[] = [];
    const failure = attempt(() => answer.finish(last));
    if (failure === null) this.#deliverAndComplete(last);
    else this.failed(failure.thrown);
  }

  /** Passes events to the sink, and calls `next` once it is ready for more. */
  #deliver(events: readonly CompletionEvent[], next: () => void): void {
    const room = events.length === 0 || this.#isOver ? null : this.#sink.events(events);
    if (this.#isOver) return;
    if (room === null) next();
    else {
      this.#exchange?.pause();
      void room.then(() => {
        if (this.#isOver) return;
        this.#exchange?.resume();
        next();
      });
    }
  }

  #complete(): void {
    this.#close("complete");
    this.#sink.ended();
  }

  #startGracePeriod(): void {
    this.#cancelGracePeriod ??= this.#upstream.clock.after(gracePeriodMs, () =>
      this.#exchange?.stop(),
    );
  }

  #failWithStatus(body: Json): void {
    const error = this.#statusError(body);
    this.#close("incomplete");
    this.#sink.failed(error);
  }

  #statusError(body: Json): ProviderError {
    const { status = 0, headers = {} } = this.#head ?? {};
    const { dialect, clock } = this.#upstream;
    const after = dialect.retryAfterMs(headers, clock.now());
    const details = { status, secrets: this.#secrets, retryAfterMs: after };
    return errorAnswer(body, { ...details, format: dialect.errors });
  }

  #close(end: "complete" | "incomplete"): void {
    this.#isOver = true;
    this.#cancelGracePeriod?.();
    this.#exchange?.close(end);
  }
}

function feedAll(chunks: readonly Buffer[], stream: EventStream, into: CompletionEvent[]) {
  return attempt(() => {
    for (const chunk of chunks) stream.feed(chunk, into);
  });
}

/** Events before a failure are part of the answer, so they are delivered first. */
function attempt(run: () => void): { readonly thrown: unknown } | null {
  try {
    run();
    return null;
  } catch (thrown) {
    return { thrown };
  }
}

/** The body of an HTTP error so far: as JSON, or else as text. */
export function bodyIn(chunks: readonly Uint8Array[]): Json {
  const text = Buffer.concat(chunks).toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reads an answer from a whole body. The events are the same as from a stream. */
function readPlainAnswer(bytes: Buffer, answer: AnswerReader, into: CompletionEvent[]): void {
  const text = textOf(bytes);
  if (isTooMuchJson(text)) throw tooManyValues();
  answer.addWhole(parse(text), into, text);
  answer.finish(into);
}

/** Reads a large answer in several turns of the event loop, so other requests can run in between. */
async function readLargeAnswer(
  bytes: Buffer,
  answer: AnswerReader,
  into: CompletionEvent[],
): Promise<void> {
  const text = textOf(bytes);
  await yieldToEventLoop();
  if (isTooMuchJson(text)) throw tooManyValues();
  await yieldToEventLoop();
  const body = parse(text);
  await yieldToEventLoop();
  answer.addWhole(body, into, text);
  answer.finish(into);
}

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

function notJson(): Error {
  return invalidAnswer("invalid_json", "The provider's answer is not JSON.");
}

/** Decodes UTF-8 without a byte order mark. Creating a decoder per answer would be slower than everything else here. */
function textOf(bytes: Buffer): string {
  if (bytes.length === 0) throw invalidAnswer("empty_answer", "The provider's answer is empty.");
  if (!isUtf8(bytes)) throw notJson();
  const text = bytes.toString("utf8");
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}
