import type { GatewayError } from "../errors/gateway-error.ts";

/** The answer of an endpoint, before it becomes a `Response`. */
export interface GatewayResponse {
  readonly status: number;
  /** Names in lower case. A new object for each answer, because more headers are added later. */
  readonly headers: Record<string, string>;
  readonly body: string | StreamBody;
}

/** A body that is written in pieces: while the answer arrives, or because it is long. */
export interface StreamBody {
  /** Its length in bytes, for servers that announce it; null if it isn't known yet. */
  readonly byteLength: number | null;
  /** Starts writing to the sink, unless the client has left. Call it at most once. */
  start(sink: TextSink): void;
  /** The client left, so nothing more is written. May be called before `start`. */
  leave(): void;
}

/** The destination of a body: a socket or a web stream. */
export interface TextSink {
  /**
   * Takes whole events. Returns null if it can take more at once; otherwise a promise that resolves when it can, and never
   * rejects.
   */
  write(text: string): Promise<void> | null;
  /** The body is complete. */
  end(): void;
  /** The body broke off, and must not look complete. */
  fail(thrown: unknown): void;
}

/** A plain error, even if a stream was requested. */
export function errorAnswer(error: GatewayError, body: string): GatewayResponse {
  return {
    status: error.status,
    headers: {
      ...error.headers,
      ...(error.status === 401 && { "www-authenticate": "Bearer" }),
      "content-type": "application/json",
    },
    body,
  };
}

/** Turns an answer into a `Response`. A stream is read at the client's speed, one piece at a time. */
export function toResponse(answer: GatewayResponse): Response {
  const body = typeof answer.body === "string" ? answer.body : toStream(answer.body);
  // A 304 must not have a body, not even an empty one.
  return new Response(body === "" ? null : body, {
    status: answer.status,
    headers: answer.headers,
  });
}

function toStream(body: StreamBody): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let nextRead = Promise.withResolvers<void>();
  let isStarted = false;
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        nextRead.resolve();
        nextRead = Promise.withResolvers();
        if (isStarted) return;
        isStarted = true;
        body.start({
          write(text) {
            // If another read is already waiting, ask for more at once.
            const { promise } = nextRead;
            controller.enqueue(encoder.encode(text));
            return promise;
          },
          end: () => controller.close(),
          fail: (thrown) => controller.error(thrown),
        });
      },
      cancel: () => body.leave(),
    },
    // Reads nothing ahead of the client.
    { highWaterMark: 0 },
  );
}
