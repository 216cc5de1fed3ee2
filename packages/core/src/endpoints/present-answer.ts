import type { CompletionEvent } from "../domain/completion-event.ts";
import { type GatewayError, toGatewayError } from "../errors/gateway-error.ts";
import { EventOutput, eventStreamHeaders, ping } from "../http/event-stream.ts";
import type { GatewayResponse, StreamBody, TextSink } from "../http/gateway-response.ts";
import { maxKeptBytes } from "../idempotency/claim.ts";
import type { Timed } from "../kernel/timers.ts";
import type { Ticket } from "../limits/admission.ts";
import type { SlotShare } from "../limits/slots.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { answerHeaders, decisionHeaders } from "../pipeline/decision-headers.ts";
import type {
  AnswerReader,
  GovernedAnswer,
  PresentedAnswer,
  SettledAnswer,
} from "../pipeline/governed-call.ts";
import { jsonHeaders, type RequestScope } from "./endpoint.ts";
import { type AnswerText, textAnswer } from "./text-answer.ts";

/** Presents an answer as a plain body: the fold of the same events that a stream would send. */
export function presentBody(
  context: GatewayContext,
  answer: GovernedAnswer,
  ticket: Ticket,
  textOf: PlainBody["textOf"],
): Promise<GatewayResponse> {
  return new Promise((resolve, reject) =>
    answer.read(new PlainAnswer({ context, answer, ticket, textOf }, resolve, reject)),
  );
}

interface PlainBody {
  readonly context: GatewayContext;
  readonly answer: GovernedAnswer;
  /** The room that a long body keeps until it is written. */
  readonly ticket: Ticket;
  readonly textOf: (settled: SettledAnswer) => AnswerText;
}

class PlainAnswer implements AnswerReader {
  readonly #plain: PlainBody;
  readonly #resolve: (answer: GatewayResponse) => void;
  readonly #reject: (thrown: unknown) => void;
  #text: AnswerText | null = null;
  #hasLeft = false;

  constructor(
    plain: PlainBody,
    resolve: (answer: GatewayResponse) => void,
    reject: (thrown: unknown) => void,
  ) {
    this.#plain = plain;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  take(): null {
    return null;
  }

  keep(settled: SettledAnswer): PresentedAnswer | null {
    const { context, answer, textOf } = this.#plain;
    this.#text = textOf(settled);
    if (typeof this.#text !== "string") return null;
    const body = Buffer.from(this.#text);
    if (body.length > maxKeptBytes) return null;
    return { headers: decisionHeaders(context.headerNames, answer, jsonHeaders()), body };
  }

  completed(settled: SettledAnswer): void {
    const { context, answer, ticket, textOf } = this.#plain;
    if (this.#hasLeft) return;
    try {
      const headers = answerHeaders(context.headerNames, answer, jsonHeaders());
      this.#resolve(textAnswer(headers, this.#text ?? textOf(settled), ticket));
    } catch (thrown) {
      this.#reject(thrown);
    }
  }

  failed(error: Error): void {
    this.#reject(error);
  }

  left(): void {
    this.#hasLeft = true;
    this.#reject(this.#plain.answer.signal.reason);
  }
}

/**
 * Writes a protocol's events: as one text, or as pieces that are created when read, because one event may repeat the whole
 * answer.
 */
export interface StreamWriter {
  /** Text that keeps a silent stream open. Default: a comment. */
  readonly ping?: string;
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
  return new StreamAnswer(scope, answer, writer).begin();
}

const never = Number.POSITIVE_INFINITY;

/** The body of a stream. It reads the answer at once, and writes once there is a sink. */
class StreamAnswer implements AnswerReader, StreamBody, Timed {
  readonly byteLength = null;
  readonly #context: RequestScope;
  readonly #answer: GovernedAnswer;
  readonly #writer: StreamWriter;
  /** Null once there are headers, or an error instead of them. */
  #pending: PromiseWithResolvers<GatewayResponse> | null = null;
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
  /** The text so far, if the answer is kept. */
  readonly #copy: AnswerCopy | null;
  /** The end, if it was written for the copy. */
  #ending: string | Iterable<string> | null = null;
  /** The client left, and the answer may continue without it. */
  #hasLeft = false;

  constructor(scope: RequestScope, answer: GovernedAnswer, writer: StreamWriter) {
    this.#context = scope;
    this.#answer = answer;
    this.#writer = writer;
    this.#copy = answer.copyRoom && new AnswerCopy(answer.copyRoom);
  }

  begin(): Promise<GatewayResponse> {
    const { timers, deadlines } = this.#context.context;
    const pending = Promise.withResolvers<GatewayResponse>();
    this.#pending = pending;
    this.#headersAt = timers.now() + deadlines.headers;
    this.#slot = timers.add(this, this.#headersAt);
    this.#answer.read(this);
    return pending.promise;
  }

  take(events: readonly CompletionEvent[]): Promise<void> | null {
    this.#sendHeaders();
    const written = this.#writer.write(events);
    const pieces = this.#copy === null ? written : this.#copy.add(written);
    if (this.#isOver) return null;
    if (this.#output !== null) return this.#output.write(pieces);
    this.#early.push(pieces);
    this.#started ??= Promise.withResolvers();
    return this.#started.promise;
  }

  keep(settled: SettledAnswer): PresentedAnswer | null {
    if (this.#copy === null) return null;
    this.#ending = this.#copy.add(this.#writer.finish(settled));
    const body = this.#copy.bytes();
    const { headerNames } = this.#context.context;
    const headers = decisionHeaders(headerNames, this.#answer, { ...eventStreamHeaders });
    return body && { headers, body };
  }

  completed(settled: SettledAnswer): void {
    this.#sendHeaders();
    this.#conclude(() => this.#ending ?? this.#writer.finish(settled));
  }

  failed(thrown: Error): void {
    this.#refuse(thrown);
    // Nobody reads the stream.
    if (this.#isOver) return;
    const error = toGatewayError(thrown);
    this.#context.report.failed(error);
    this.#conclude(() => this.#writer.fail(error));
  }

  left(): void {
    if (this.#pending !== null) this.#refuse(this.#answer.signal.reason);
    else this.#breakOff();
  }

  /** Ends the body at once. The answer may continue without it. */
  #breakOff(): void {
    if (this.#isOver) return;
    this.#end();
    this.#hasLeft = true;
    this.#sink?.fail(this.#answer.signal.reason);
  }

  /** Sends the headers without an event after a while. */
  check(now: number): number {
    if (now >= this.#headersAt) this.#sendHeaders();
    return this.#headersAt;
  }

  #sendHeaders(): void {
    const pending = this.#takePending();
    if (pending === null) return;
    const { headerNames } = this.#context.context;
    pending.resolve({
      status: 200,
      headers: answerHeaders(headerNames, this.#answer, { ...eventStreamHeaders }),
      body: this,
    });
  }

  #refuse(thrown: unknown): void {
    const pending = this.#takePending();
    if (pending === null) return;
    this.#isOver = true;
    pending.reject(thrown);
  }

  #takePending(): PromiseWithResolvers<GatewayResponse> | null {
    const pending = this.#pending;
    if (pending === null) return null;
    this.#pending = null;
    this.#headersAt = never;
    if (this.#slot !== null) this.#context.context.timers.remove(this.#slot);
    this.#slot = null;
    return pending;
  }

  start(sink: TextSink): void {
    if (this.#hasLeft) sink.fail(this.#answer.signal.reason);
    if (this.#isOver) return;
    const { timers, deadlines } = this.#context.context;
    this.#sink = sink;
    this.#output = new EventOutput(sink, {
      timers,
      every: deadlines.heartbeat,
      text: this.#writer.ping ?? ping,
    });
    this.#writeEarly(this.#output);
    if (this.#last !== null) this.#conclude(this.#last);
  }

  #writeEarly(output: EventOutput): void {
    try {
      let room: Promise<void> | null = null;
      for (const pieces of this.#early.splice(0)) room = output.write(pieces);
      this.#started?.resolve(room ?? undefined);
    } catch (thrown) {
      this.#started?.reject(thrown);
    }
    this.#started = null;
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

/** A copy of a stream's text while it is written, up to the most that is kept, and while there is room for it. */
class AnswerCopy {
  readonly #room: SlotShare;
  #texts: string[] = [];
  #bytes = 0;
  #isDropped = false;

  constructor(room: SlotShare) {
    this.#room = room;
  }

  /** Copies texts and returns them. Pieces that are created when read are created once. */
  add(pieces: string | Iterable<string>): string | Iterable<string> {
    if (this.#isDropped) return pieces;
    if (typeof pieces === "string") {
      this.#take(pieces);
      return pieces;
    }
    const iterator = pieces[Symbol.iterator]();
    const taken: string[] = [];
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
      taken.push(next.value);
      this.#take(next.value);
      if (this.#isDropped) return continued(taken, iterator);
    }
    return taken;
  }

  /** The whole text in UTF-8; null if it was dropped. */
  bytes(): Uint8Array | null {
    return this.#isDropped ? null : Buffer.from(this.#texts.join(""));
  }

  #take(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#bytes += bytes;
    if (this.#bytes <= maxKeptBytes && this.#room.grow(bytes)) {
      this.#texts.push(text);
      return;
    }
    this.#isDropped = true;
    this.#texts = [];
    this.#room.release();
  }
}

function* continued(taken: readonly string[], rest: Iterator<string>): Generator<string> {
  yield* taken;
  for (let next = rest.next(); next.done !== true; next = rest.next()) yield next.value;
}
