import type { Answer } from "./answer.ts";

/** An answer as a `Response`. A stream is read as fast as the client reads, one item at a time. */
export function toResponse(answer: Answer): Response {
  const body = typeof answer.body === "string" ? answer.body : toStream(answer.body);
  return new Response(body, { status: answer.status, headers: answer.headers });
}

function toStream(items: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = items[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // An empty item enqueues nothing, and without an item nobody pulls again: go on to the next.
        for (;;) {
          const { done, value } = await iterator.next();
          if (done) return controller.close();
          if (value !== "") return controller.enqueue(encoder.encode(value));
        }
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    // Nothing is read ahead of the client.
    { highWaterMark: 0 },
  );
}
