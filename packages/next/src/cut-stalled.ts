/**
 * The same response, whose body breaks off when nobody has asked for its next piece within `writeStall` milliseconds:
 * Next's own server would wait for ever for a client that does not read.
 */
export function cutStalled(response: Response, writeStall: number): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  let stall: NodeJS.Timeout | undefined;

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(stall);
        const { done, value } = await reader.read();
        if (done) return controller.close();
        controller.enqueue(value);
        stall = setTimeout(() => {
          controller.error(new Error("The client left its answer unread for too long."));
          reader.cancel().catch(() => {});
        }, writeStall);
        stall.unref();
      },
      async cancel(reason) {
        clearTimeout(stall);
        await reader.cancel(reason);
      },
    },
    // Nothing is read ahead of the client.
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers: response.headers });
}
