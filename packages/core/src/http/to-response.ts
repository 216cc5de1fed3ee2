import type { GatewayResponse, StreamBody } from "./gateway-response.ts";

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
