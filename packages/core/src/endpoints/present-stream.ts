import type { CompletionEvent } from "../domain/completion-event.ts";
import { type GatewayError, toGatewayError } from "../errors/gateway-error.ts";
import type { Answer, StreamBody, TextSink } from "../http/answer.ts";
import { createEventOutput, type EventOutput, eventStreamHeaders } from "../http/event-stream.ts";
import { unlessAborted } from "../http/read-bytes.ts";
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

/**
 * A governed answer as a stream. Headers wait for the first event, within a bound, so that a failure before it is a
 * plain error; later failures take the stream's own form.
 */
export async function presentStream(
  { line, report }: EndpointContext,
  answer: GovernedAnswer,
  writer: StreamWriter,
): Promise<Answer> {
  const { body, begun } = streamOf(line, answer, { writer, report });
  await unlessAborted(answer.signal, begunOrWait(line, begun));
  return {
    status: 200,
    headers: { ...eventStreamHeaders, ...answerHeaders(line.headerNames, answer) },
    body,
  };
}

/** Waits for the first event or for the bound, whichever comes first; rejects when the answer fails before both. */
function begunOrWait(line: Line, begun: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = line.clock.after(line.deadlines.headers, resolve);
    begun.then(
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

/** The answer as a body, and the moment at which it has something to show. The provider is asked at once. */
function streamOf(
  line: Line,
  answer: GovernedAnswer,
  { writer, report }: { readonly writer: StreamWriter; readonly report: RequestReport },
): { readonly body: StreamBody; readonly begun: Promise<unknown> } {
  const { clock, deadlines } = line;
  const begun = Promise.withResolvers<unknown>();
  const started = Promise.withResolvers<EventOutput>();
  let output: EventOutput | null = null;
  let isOver = false;

  const answered = answer.read((events) => {
    begun.resolve(null);
    const pieces = writer.write(events);
    return output === null
      ? started.promise.then(async (first) => (await first.write(pieces)) ?? undefined)
      : output.write(pieces);
  });
  answered.then(begun.resolve, begun.reject);

  const failed = (thrown: unknown): Iterable<string> => {
    // Nobody is left to be told of it.
    if (isOver) return [];
    const error = toGatewayError(thrown);
    report.failed(error);
    return writer.fail(error);
  };
  const end = (): void => {
    isOver = true;
    output?.stop();
  };
  const conclude = async (sink: TextSink, to: EventOutput): Promise<void> => {
    try {
      await to.write(await answered.then(writer.finish, failed));
      if (isOver) return;
      end();
      sink.end();
    } catch (thrown) {
      end();
      sink.fail(thrown);
    }
  };
  return {
    begun: begun.promise,
    body: {
      start(sink) {
        if (isOver) return;
        output = createEventOutput(sink, { clock, every: deadlines.heartbeat });
        started.resolve(output);
        void conclude(sink, output);
      },
      leave() {
        if (isOver) return;
        end();
        answer.abandon();
      },
    },
  };
}
