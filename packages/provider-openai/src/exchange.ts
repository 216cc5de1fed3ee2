import { type Clock, ProviderError } from "@tollgate/core/provider";
import type { Dispatcher, Pool } from "undici";
import { transportFailure } from "./failures.ts";
import { createInbox } from "./inbox.ts";

export interface AnswerHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** One request and its answer. What it throws is a ProviderError, or the reason of the call's signal. */
export interface Exchange {
  readonly head: Promise<AnswerHead>;
  /** The bytes that arrived since the last read; null when there are no more. */
  read(): Promise<readonly Uint8Array[] | null>;
  /** Ends reading, as if the upstream had ended. */
  stop(): void;
  /** Nothing more is wanted: closes the connection, or keeps it when a complete answer ends by itself in a moment. */
  close(answer: "complete" | "incomplete"): void;
}

export interface ExchangeOptions {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent with POST; null for a GET. */
  readonly body: string | Buffer | null;
  readonly totalBytes: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

// Beyond this the upstream's socket is paused until what arrived is read.
const mostWaiting = 65_536;
const mostInterimAnswers = 16;
const lingerMs = 1_000;

/** Sends a request: over `dispatch`, which tells exactly when a request has a connection to leave on. */
export function startExchange(pool: Pool, options: ExchangeOptions): Exchange {
  const { signal, clock } = options;
  const head = Promise.withResolvers<AnswerHead>();
  head.promise.catch(() => {});
  const inbox = createInbox();
  let controller: Dispatcher.DispatchController | null = null;
  let status: number | null = null;
  let received = 0;
  let interimAnswers = 0;
  let over = false;
  let cancelLinger = (): void => {};

  const destroy = (): void => {
    inbox.end();
    if (!over) controller?.abort(new Error("the answer is no longer wanted"));
  };
  const fail = (thrown: unknown): void => {
    inbox.end({ thrown });
    head.reject(thrown);
    destroy();
  };
  const onAbort = (): void => {
    inbox.discard();
    fail(signal.reason);
  };
  const settle = (): void => {
    over = true;
    cancelLinger();
    signal.removeEventListener("abort", onAbort);
  };

  signal.addEventListener("abort", onAbort, { once: true });
  pool.dispatch(
    {
      path: options.path,
      method: options.body === null ? "GET" : "POST",
      headers: options.headers,
      body: options.body,
    },
    {
      onRequestStart(started) {
        controller = started;
        // Given up while it was connecting: nothing leaves any more.
        if (inbox.ended()) destroy();
      },
      onResponseStart(_, answered, headers) {
        status = answered;
        if (answered >= 200) head.resolve({ status: answered, headers });
        else if (++interimAnswers > mostInterimAnswers) fail(tooMuch("too_many_interim", answered));
      },
      onResponseData(running, chunk) {
        received += chunk.length;
        if (received > options.totalBytes) fail(tooMuch("answer_too_large", status));
        if (inbox.ended()) return;
        inbox.push(chunk);
        if (inbox.waiting() > mostWaiting) running.pause();
      },
      onResponseEnd() {
        inbox.end();
        settle();
      },
      onResponseError(_, error) {
        settle();
        fail(transportFailure(error, { sent: controller !== null, status }));
      },
    },
  );

  return {
    head: head.promise,
    async read() {
      for (let wait = inbox.ready(); wait !== null; wait = inbox.ready()) await wait;
      const chunks = inbox.take();
      if (controller?.paused) controller.resume();
      return chunks;
    },
    stop: () => inbox.end(),
    close(answer) {
      signal.removeEventListener("abort", onAbort);
      inbox.end();
      inbox.discard();
      if (over) return;
      if (answer === "incomplete") return destroy();
      cancelLinger = clock.after(lingerMs, destroy);
      if (controller?.paused) controller.resume();
    },
  };
}

function tooMuch(reason: string, status: number | null): ProviderError {
  return new ProviderError("The provider answered more than is accepted.", {
    reason,
    delivery: "unknown",
    status,
  });
}
