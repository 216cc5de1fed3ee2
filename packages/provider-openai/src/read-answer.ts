import {
  type Clock,
  type CompletionEvent,
  type Json,
  ProviderError,
  retryAfterMs,
} from "@tollgate/core/provider";
import { type Answer, createAnswer } from "./answer.ts";
import { errorAnswer } from "./error-answer.ts";
import { createEventStream } from "./event-stream.ts";
import type { AnswerHead, Exchange } from "./exchange.ts";
import { invalidAnswer } from "./failures.ts";
import { readPlainAnswer } from "./plain-answer.ts";

export interface ReadOptions {
  /** Tells this answer from others. */
  readonly seed: string;
  /** The credentials that were sent. */
  readonly secrets: readonly string[];
  readonly eventBytes: number;
  readonly bodyBytes: number;
  readonly clock: Clock;
}

// How long usage is awaited after the model stopped, and the body of an error after its status.
const patienceMs = 2_000;
const mostErrorBytes = 65_536;

/** An upstream's answer being read. */
export interface AnswerReader {
  /** The events of what arrived since the last read; null at the end of a complete answer. */
  read(): Promise<readonly CompletionEvent[] | null>;
  /** Nothing more will be read. */
  stop(): void;
}

/** Begins to read an upstream's answer, by what its content type says it is. */
export async function openAnswer(exchange: Exchange, options: ReadOptions): Promise<AnswerReader> {
  const head = await exchange.head;
  if (head.status !== 200) throw await statusFailure(exchange, head, options);
  const { "content-type": type, "content-encoding": encoding } = head.headers;
  // None was asked for, and a few bytes of it can stand for gigabytes.
  if (encoding !== undefined && encoding !== "identity")
    throw invalidAnswer("unexpected_encoding", "The provider's answer is compressed.");
  const answer = createAnswer(options);
  const mediaType = typeof type === "string" ? type.split(";", 1)[0]?.trim().toLowerCase() : "";
  if (mediaType === "text/event-stream") return streamReader(exchange, answer, options);
  if (mediaType === "application/json") return wholeReader(exchange, answer, options.bodyBytes);
  throw invalidAnswer("unexpected_content_type", "The provider's answer is no completion.");
}

function streamReader(
  exchange: Exchange,
  answer: Answer,
  { eventBytes, secrets, clock }: ReadOptions,
): AnswerReader {
  const stream = createEventStream(answer, { eventBytes, secrets });
  let failure: { readonly thrown: unknown } | null = null;
  let cancelPatience: (() => void) | null = null;
  let isFinished = false;

  return {
    async read() {
      if (failure) throw failure.thrown;
      if (isFinished) return null;
      while (!stream.done()) {
        if (answer.finished()) cancelPatience ??= clock.after(patienceMs, exchange.stop);
        const chunks = await exchange.read();
        if (chunks === null) break;
        const events: CompletionEvent[] = [];
        failure = attempt(() => {
          for (const chunk of chunks) stream.feed(chunk, events);
        });
        if (events.length > 0) return events;
        if (failure) throw failure.thrown;
      }
      isFinished = true;
      const last: CompletionEvent[] = [];
      answer.finish(last);
      return last;
    },
    stop: () => cancelPatience?.(),
  };
}

function wholeReader(exchange: Exchange, answer: Answer, most: number): AnswerReader {
  let isRead = false;
  return {
    async read() {
      if (isRead) return null;
      isRead = true;
      return readWhole(exchange, answer, most);
    },
    stop: () => {},
  };
}

/** What came before a failure is still part of the answer, so the failure waits until it is handed on. */
function attempt(run: () => void): { readonly thrown: unknown } | null {
  try {
    run();
    return null;
  } catch (thrown) {
    return { thrown };
  }
}

async function readWhole(
  exchange: Exchange,
  answer: Answer,
  most: number,
): Promise<readonly CompletionEvent[]> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (let read = await exchange.read(); read !== null; read = await exchange.read()) {
    for (const chunk of read) bytes += chunk.length;
    if (bytes > most)
      throw invalidAnswer("answer_too_large", "The provider answered more than is accepted.");
    chunks.push(...read);
  }
  const events: CompletionEvent[] = [];
  await readPlainAnswer(chunks, answer, events);
  return events;
}

async function statusFailure(
  exchange: Exchange,
  { status, headers }: AnswerHead,
  { clock, secrets }: ReadOptions,
): Promise<ProviderError> {
  if (status >= 300 && status < 400)
    return new ProviderError("The provider answered with a redirect, which is not followed.", {
      reason: "redirect_refused",
      delivery: "answered",
      status,
    });
  if (status < 300)
    return invalidAnswer(
      `status_${status}`,
      `The provider answered with status ${status}.`,
      status,
    );
  const body = await errorBody(exchange, clock);
  return errorAnswer(body, { status, secrets, retryAfterMs: retryAfterMs(headers, clock.now()) });
}

/** The body of an error, as far as it comes soon and is short; text where it is no JSON. */
async function errorBody(exchange: Exchange, clock: Clock): Promise<Json> {
  const cancelPatience = clock.after(patienceMs, exchange.stop);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (let read = await exchange.read(); read !== null; read = await exchange.read()) {
      chunks.push(...read);
      bytes += read.reduce((sum, chunk) => sum + chunk.length, 0);
      if (bytes > mostErrorBytes) return null;
    }
  } catch (error) {
    // A broken body takes nothing from the status; only the caller's own abort goes on.
    if (!(error instanceof ProviderError)) throw error;
  } finally {
    cancelPatience();
  }
  const text = Buffer.concat(chunks).toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
