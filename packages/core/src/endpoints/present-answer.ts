import type { CompletionEvent } from "../domain/completion-event.ts";
import { type GatewayError, toGatewayError } from "../errors/gateway-error.ts";
import { EventOutput, eventStreamHeaders } from "../http/event-stream.ts";
import type { GatewayResponse, StreamBody, TextSink } from "../http/gateway-response.ts";
import type { Timed } from "../kernel/timers.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { answerHeaders } from "../pipeline/decision-headers.ts";
import type { AnswerReader, GovernedAnswer, SettledAnswer } from "../pipeline/governed-call.ts";
import { jsonHeaders, type RequestScope } from "./endpoint.ts";

/** Presents an answer as a plain body: the fold of the same events that a stream would send. */
export function presentBody(
  context: GatewayContext,
  answer: GovernedAnswer,
  bodyOf: (settled: SettledAnswer) => string,
): Promise<GatewayResponse> {
  const present = (settled: SettledAnswer): GatewayResponse => ({
    status: 200,
    headers: answerHeaders(context.headerNames, answer, jsonHeaders()),
    body: bodyOf(settled),
  });
  return new Promise((resolve, reject) =>
    answer.read({
      take: () => null,
      completed(settled) {
        try {
          resolve(present(settled));
        } catch (thrown) {
          reject(thrown);
        }
      },
      failed: reject,
      left: () => reject(answer.signal.reason),
    }),
  );
}

/**
 * Writes a protocol's events: as one text, or as pieces that are created when read, because one event may repeat the whole
 * answer.
 */
export interface StreamWriter {
  write(events: readonly CompletionEvent[]): string | Iterable<string>;
  /** Writes everything that marks the answer as complete. */
  finish(settled: SettledAnswer): string | Iterable<string>;
  fail(error: GatewayError): string | Iterable<string>;
}

/**
 * Presents an answer as a stream. Its headers wait for the first event, for a limited time: an earlier failure becomes a
 * plain error. Later failures become events of the stream.
 */
export function presentStream(
  scope: RequestScope,
  answer: GovernedAnswer,
  writer: StreamWriter,
): Promise<GatewayResponse> {
  return new Promise((resolve, reject) =>
    new StreamAnswer(scope, answer, writer).begin(resolve, reject),
  );
}

const never = Number.POSITIVE_INFINITY;

/** The body of a stream. It reads the answer at once, and writes once there is a sink. */
class StreamAnswer implements AnswerReader, StreamBody, Timed {
  readonly #context: RequestScope;
  readonly #answer: GovernedAnswer;
  readonly #writer: StreamWriter;
  #resolve: (answer: GatewayResponse) => void = () => {};
  #reject: (thrown: unknown) => void = () => {};
  #hasBegun = false;
  /** When to send the headers even without an event. Monotonic. */
  #headersAt = never;
  #slot: number | null = null;
  #sink: TextSink | null = null;
  #output: EventOutput | null = null;
  /** Events that arrived before there was a sink, and the promise that their sender waits for. */
  readonly #early: (string | Iterable<string>)[] = [];
  #started: PromiseWithResolvers<void> | null = null;
  /** Writes the end, once it is known. */
  #last: (() => string | Iterable<string>) | null = null;
  #isOver = false;

  constructor(scope: RequestScope, answer: GovernedAnswer, writer: StreamWriter) {
    this.#context = scope;
    this.#answer = answer;
    this.#writer = writer;
  }

  begin(resolve: (answer: GatewayResponse) => void, reject: (thrown: unknown) => void): void {
    const { timers, deadlines } = this.#context.context;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#headersAt = timers.now() + deadlines.headers;
    this.#slot = timers.add(this, this.#headersAt);
    this.#answer.read(this);
  }

  take(events: readonly CompletionEvent[]): Promise<void> | null {
    this.#sendHeaders();
    const pieces = this.#writer.write(events);
    if (this.#output !== null) return this.#output.write(pieces);
    this.#early.push(pieces);
    this.#started ??= Promise.withResolvers();
    return this.#started.promise;
  }

  completed(settled: SettledAnswer): void {
    this.#sendHeaders();
    this.#conclude(() => this.#writer.finish(settled));
  }

  failed(thrown: Error): void {
    if (!this.#hasBegun) this.#refuse(thrown);
    // Nobody reads the stream.
    if (this.#isOver) return;
    const error = toGatewayError(thrown);
    this.#context.report.failed(error);
    this.#conclude(() => this.#writer.fail(error));
  }

  left(): void {
    if (!this.#hasBegun) this.#refuse(this.#answer.signal.reason);
  }

  /** Sends the headers without an event after a while. */
  check(now: number): number {
    if (now >= this.#headersAt) this.#sendHeaders();
    return this.#headersAt;
  }

  #sendHeaders(): void {
    if (this.#hasBegun) return;
    this.#begun();
    const { headerNames } = this.#context.context;
    this.#resolve({
      status: 200,
      headers: answerHeaders(headerNames, this.#answer, { ...eventStreamHeaders }),
      body: this,
    });
  }

  #refuse(thrown: unknown): void {
    this.#begun();
    this.#isOver = true;
    this.#reject(thrown);
  }

  #begun(): void {
    this.#hasBegun = true;
    this.#headersAt = never;
    if (this.#slot !== null) this.#context.context.timers.remove(this.#slot);
    this.#slot = null;
  }

  start(sink: TextSink): void {
    if (this.#isOver) return;
    const { timers, deadlines } = this.#context.context;
    this.#sink = sink;
    this.#output = new EventOutput(sink, { timers, every: deadlines.heartbeat });
    this.#writeEarly(this.#output);
    if (this.#last !== null) this.#conclude(this.#last);
  }

  #writeEarly(output: EventOutput): void {
    try {
      let room: Promise<void> | null = null;
      for (const pieces of this.#early) room = output.write(pieces);
      this.#started?.resolve(room ?? undefined);
    } catch (thrown) {
      this.#started?.reject(thrown);
    }
  }

  leave(): void {
    if (this.#isOver) return;
    this.#end();
    this.#answer.abandon();
  }

  #conclude(last: () => string | Iterable<string>): void {
    this.#last = last;
    if (this.#sink !== null && this.#output !== null && !this.#isOver)
      void this.#writeLast(last, this.#sink, this.#output);
  }

  async #writeLast(
    last: () => string | Iterable<string>,
    sink: TextSink,
    output: EventOutput,
  ): Promise<void> {
    try {
      const room = output.write(last());
      if (room !== null) await room;
      if (this.#isOver) return;
      this.#end();
      sink.end();
    } catch (thrown) {
      this.#end();
      sink.fail(thrown);
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#output?.stop();
  }
}
