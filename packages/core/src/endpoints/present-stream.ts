import type { CompletionEvent } from "../domain/completion-event.ts";
import { type GatewayError, toGatewayError } from "../errors/gateway-error.ts";
import type { Answer } from "../http/answer.ts";
import { eventStreamHeaders, withHeartbeat } from "../http/event-stream.ts";
import { isLarge, otherWork } from "../kernel/other-work.ts";
import type { GovernedAnswer, SettledAnswer } from "../pipeline/governed-call.ts";
import type { Line } from "../pipeline/line.ts";
import { answerHeaders } from "../pipeline/with-decision.ts";
import type { EndpointContext, RequestReport } from "./endpoint.ts";

/** Writes a protocol's events, in pieces that are made when they are read: one may repeat the whole answer. */
export interface StreamWriter {
  write(events: readonly CompletionEvent[]): Iterable<string>;
  /** Everything that marks the answer as complete. */
  finish(settled: SettledAnswer): Iterable<string>;
  fail(error: GatewayError): Iterable<string>;
}

type Next = IteratorResult<readonly CompletionEvent[], SettledAnswer>;

/**
 * A governed answer as a stream. Headers wait for the first event, within a bound, so that a failure before it is a
 * plain error; later failures take the stream's own form.
 */
export async function presentStream(
  { line, report }: EndpointContext,
  answer: GovernedAnswer,
  writer: StreamWriter,
): Promise<Answer> {
  const first = answer.events.next();
  await firstOrWait(line, first);
  return {
    status: 200,
    headers: { ...eventStreamHeaders, ...answerHeaders(line.headerNames, answer) },
    body: withHeartbeat(streamOf(answer, writer, { first, report }), {
      clock: line.clock,
      every: line.deadlines.heartbeat,
    }),
  };
}

/** Waits for the first event or for the bound, whichever comes first; rejects when the first event does. */
function firstOrWait(line: Line, first: Promise<Next>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = line.clock.after(line.deadlines.headers, resolve);
    first.then(
      () => {
        cancel();
        resolve();
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}

function streamOf(
  answer: GovernedAnswer,
  writer: StreamWriter,
  { first, report }: { readonly first: Promise<Next>; readonly report: RequestReport },
): AsyncIterable<string> {
  let pending: Promise<Next> | null = first;
  let isEnded = false;
  let pieces: ReturnType<typeof piecesOf> | null = null;
  const begin = async (): Promise<Iterable<string>> => {
    try {
      const { done, value } = await (pending ?? answer.events.next());
      pending = null;
      isEnded = done === true;
      return done ? writer.finish(value) : writer.write(value);
    } catch (thrown) {
      isEnded = true;
      const error = toGatewayError(thrown);
      report.failed(error);
      return writer.fail(error);
    }
  };
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        if (pieces?.isOver() !== false) {
          if (isEnded) return { done: true, value: undefined };
          pieces = piecesOf(await begin());
        }
        const value = pieces.take();
        if (isLarge(value.length)) await otherWork();
        return { done: false, value };
      },
      async return() {
        if (!isEnded) answer.abandon();
        isEnded = true;
        pieces = null;
        return { done: true, value: undefined };
      },
    }),
  };
}

const enough = 65_536;

/** Joins pieces until there is enough to send at once. */
function piecesOf(all: Iterable<string>): { take(): string; isOver(): boolean } {
  const iterator = all[Symbol.iterator]();
  let isOver = false;
  return {
    take() {
      let text = "";
      while (!isOver && text.length < enough) {
        const { done, value } = iterator.next();
        if (done === true) isOver = true;
        else text += value;
      }
      return text;
    },
    isOver: () => isOver,
  };
}
