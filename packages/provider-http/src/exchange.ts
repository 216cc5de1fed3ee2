import { nextTick } from "node:process";
import { type Clock, createAfterReads, ProviderError } from "@tollgate/core/provider";
import type { Dispatcher, Pool } from "undici";
import { connectTimeout, transportFailure } from "./failures.ts";

export interface AnswerHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Receives one answer: its head, the chunks of each read, and its end. Nothing follows `end` or `failed`. */
export interface AnswerReceiver {
  head(head: AnswerHead): void;
  data(chunks: readonly Buffer[]): void;
  end(): void;
  /** With a ProviderError. */
  failed(thrown: unknown): void;
}

export interface ExchangeOptions extends ExchangeBounds {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent with POST; null for a GET. */
  readonly body: string | Buffer | null;
}

/** The bounds of one answer. */
interface ExchangeBounds {
  readonly totalBytes: number;
  /** How long the request may wait for a connection, in milliseconds. */
  readonly connectWithin: number;
  readonly clock: Clock;
}

// If more bytes are buffered, or any while the receiver is paused, the upstream's socket is paused until they are read.
const maxBufferedBytes = 65_536;
const maxInterimResponses = 16;
const lingerMs = 1_000;
/** Events that arrived together are passed on together, whichever answers they belong to. */
const afterReads = createAfterReads();

/** One request and its answer. `dispatch` reports exactly when the request has a connection. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #bounds: ExchangeBounds;
  readonly #receiver: AnswerReceiver;
  #controller: Dispatcher.DispatchController | null = null;
  #status: number | null = null;
  #head: AnswerHead | null = null;
  /** The head is delivered. */
  #isOpen = false;
  #chunks: Buffer[] = [];
  #bufferedBytes = 0;
  #received = 0;
  #interimResponses = 0;
  /** How the answer ended; null before. Only the first end counts. */
  #end: { readonly failure: { readonly thrown: unknown } | null } | null = null;
  /** A delivery is scheduled. It contains everything from one read. */
  #isScheduled = false;
  #isPaused = false;
  /** The caller needs nothing more. */
  #isClosed = false;
  #isEndDelivered = false;
  /** The exchange with the upstream has ended. */
  #isOver = false;
  #cancelLinger: (() => void) | null = null;
  #cancelConnecting: (() => void) | null = null;

  constructor(pool: Pick<Pool, "dispatch">, options: ExchangeOptions, receiver: AnswerReceiver) {
    const { totalBytes, connectWithin, clock } = options;
    // An answer may take minutes, and its request may be large.
    this.#bounds = { totalBytes, connectWithin, clock };
    this.#receiver = receiver;
    // The requests of one turn are written together, after all of them are prepared.
    nextTick(() => this.#send(pool, options));
  }

  #send(pool: Pick<Pool, "dispatch">, { path, headers, body }: ExchangeOptions): void {
    if (this.#isClosed) return;
    pool.dispatch({ path, method: body === null ? "GET" : "POST", headers, body }, this);
    // An open connection takes the request at once.
    if (this.#controller === null && !this.#isOver) this.#limitConnecting();
  }

  onRequestStart(started: Dispatcher.DispatchController): void {
    this.#controller = started;
    this.#cancelConnecting?.();
    this.#cancelConnecting = null;
    // Cancelled while connecting: nothing was sent.
    if (this.#end !== null || this.#isClosed) this.#destroy();
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHead["headers"],
  ): void {
    this.#status = status;
    if (status >= 200) {
      this.#head = { status, headers };
      this.#schedule();
    } else if (++this.#interimResponses > maxInterimResponses)
      this.#fail(limitExceeded("too_many_interim", status));
  }

  onResponseData(running: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#received += chunk.length;
    if (this.#received > this.#bounds.totalBytes)
      this.#fail(limitExceeded("answer_too_large", this.#status));
    if (this.#end !== null || this.#isClosed) return;
    this.#chunks.push(chunk);
    this.#bufferedBytes += chunk.length;
    if (this.#isPaused || this.#bufferedBytes > maxBufferedBytes) running.pause();
    this.#schedule();
  }

  onResponseEnd(): void {
    this.#markOver();
    this.stop();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#markOver();
    this.#fail(transportFailure(error, { sent: this.#controller !== null, status: this.#status }));
  }

  /** Delivers nothing until `resume`. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#schedule();
  }

  /** Delivers at once everything already read. */
  flush(): void {
    this.#isPaused = false;
    this.#deliver();
  }

  /** Ends the answer as if the upstream had ended it. */
  stop(): void {
    this.#end ??= { failure: null };
    this.#schedule();
  }

  /** Closes the connection. Keeps it for the next request if a complete answer ends within a second. */
  close(answer: "complete" | "incomplete"): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelConnecting?.();
    this.#chunks = [];
    if (this.#isOver) return;
    if (answer === "incomplete") {
      this.#destroy();
      return;
    }
    this.#cancelLinger = this.#bounds.clock.after(lingerMs, () => this.#destroy());
    this.#resumeSocket();
  }

  #limitConnecting(): void {
    const { clock, connectWithin } = this.#bounds;
    this.#cancelConnecting = clock.after(connectWithin, () => this.#fail(connectTimeout()));
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isPaused || this.#isClosed) return;
    this.#isScheduled = true;
    const deliver = (): void => this.#deliver();
    // A plain answer mostly comes in one read, and the gateway gathers those itself.
    if (this.#isOpen) afterReads(deliver);
    else nextTick(deliver);
  }

  #deliver(): void {
    this.#isScheduled = false;
    if (this.#isPaused || this.#isClosed) return;
    const [head, chunks] = [this.#head, this.#chunks];
    this.#head = null;
    this.#chunks = [];
    this.#bufferedBytes = 0;
    if (head !== null) {
      this.#isOpen = true;
      this.#receiver.head(head);
    }
    if (chunks.length > 0 && !this.#isClosed) this.#receiver.data(chunks);
    if (this.#isPaused || this.#isClosed) return;
    this.#resumeSocket();
    // Resuming can deliver more at once. The end comes after it.
    if (this.#end !== null && this.#chunks.length === 0) this.#deliverEnd(this.#end.failure);
  }

  #deliverEnd(failure: { readonly thrown: unknown } | null): void {
    if (this.#isEndDelivered) return;
    this.#isEndDelivered = true;
    if (failure === null) this.#receiver.end();
    else this.#receiver.failed(failure.thrown);
  }

  #resumeSocket(): void {
    if (!this.#isOver && this.#controller?.paused) this.#controller.resume();
  }

  #fail(thrown: unknown): void {
    this.#end ??= { failure: { thrown } };
    this.#destroy();
    this.#schedule();
  }

  #destroy(): void {
    if (!this.#isOver) this.#controller?.abort(new Error("The answer was cancelled."));
  }

  #markOver(): void {
    this.#isOver = true;
    this.#cancelConnecting?.();
    this.#cancelLinger?.();
  }
}

function limitExceeded(reason: string, status: number | null): ProviderError {
  return new ProviderError("The provider's answer is too large.", {
    reason,
    delivery: "unknown",
    status,
  });
}
