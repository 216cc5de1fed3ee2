import type { CompletionEvent } from "../domain/completion-event.ts";
import type { GatewayError } from "../errors/gateway-error.ts";
import { toGatewayError } from "../errors/gateway-error.ts";
import type { Answer } from "../http/answer.ts";
import { eventStreamHeaders, withHeartbeat } from "../http/event-stream.ts";
import type { GovernedAnswer, SettledAnswer } from "../pipeline/governed-call.ts";
import type { Line } from "../pipeline/line.ts";
import { answerHeaders } from "../pipeline/with-decision.ts";
import type { EndpointContext, RequestReport } from "./endpoint.ts";

/** Writes a protocol's events. */
export interface StreamWriter {
  write(events: readonly CompletionEvent[]): string;
  /** Everything that marks the answer as complete. */
  finish(settled: SettledAnswer): string;
  fail(error: GatewayError): string;
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
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        if (isEnded) return { done: true, value: undefined };
        try {
          const { done, value } = await (pending ?? answer.events.next());
          pending = null;
          if (!done) return { done: false, value: writer.write(value) };
          isEnded = true;
          return { done: false, value: writer.finish(value) };
        } catch (thrown) {
          isEnded = true;
          const error = toGatewayError(thrown);
          report.failed(error);
          return { done: false, value: writer.fail(error) };
        }
      },
      async return() {
        if (!isEnded) answer.abandon();
        isEnded = true;
        return { done: true, value: undefined };
      },
    }),
  };
}
