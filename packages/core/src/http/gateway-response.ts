import { errorBody, type GatewayError } from "../errors/gateway-error.ts";

/** What a handler answers, before it becomes a `Response`. */
export interface GatewayResponse {
  readonly status: number;
  /** Names in lower case. Of this answer alone: it gets more of them on its way. */
  readonly headers: Record<string, string>;
  readonly body: string | StreamBody;
}

/** A body that is written while it comes into being. */
export interface StreamBody {
  /** Begins to write to the sink, unless the client has left. Call it at most once. */
  start(sink: TextSink): void;
  /** The client left: nothing more is written. Call it whether the body has started or not. */
  leave(): void;
}

/** Where a body goes: to a socket, or into a web stream. */
export interface TextSink {
  /** Takes whole events. Null if it can take more at once; else a promise that resolves when it can, and never rejects. */
  write(text: string): Promise<void> | null;
  /** The body is complete. */
  end(): void;
  /** The body broke off, and must not look complete. */
  fail(thrown: unknown): void;
}

/** A failure as a plain answer, whatever form was asked for. */
export function errorAnswer(error: GatewayError): GatewayResponse {
  return {
    status: error.status,
    headers: { ...error.headers, "content-type": "application/json" },
    body: errorBody(error),
  };
}

/** An answer as a `Response`. A stream is read as fast as the client reads, one piece at a time. */
export function toResponse(answer: GatewayResponse): Response {
  const body = typeof answer.body === "string" ? answer.body : toStream(answer.body);
  return new Response(body, { status: answer.status, headers: answer.headers });
}

function toStream(body: StreamBody): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let asked = Promise.withResolvers<void>();
  let isStarted = false;
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        asked.resolve();
        asked = Promise.withResolvers();
        if (isStarted) return;
        isStarted = true;
        body.start({
          write(text) {
            // Another read may be waiting already: then what is written asks for more at once.
            const { promise } = asked;
            controller.enqueue(encoder.encode(text));
            return promise;
          },
          end: () => controller.close(),
          fail: (thrown) => controller.error(thrown),
        });
      },
      cancel: () => body.leave(),
    },
    // Nothing is read ahead of the client.
    { highWaterMark: 0 },
  );
}
