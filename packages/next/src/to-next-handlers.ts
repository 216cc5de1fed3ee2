import { type Handler, type Mountable, requireGateway, systemClock } from "@tollgate/core";
import { milliseconds, read, type Schema, z } from "@tollgate/core/schemas";

/** Route handlers for every method of the gateway. Next answers other methods itself. */
export interface NextHandlers {
  readonly GET: Handler;
  readonly POST: Handler;
  readonly DELETE: Handler;
}

/** Limits of the handlers. Configure the gateway's own limits on the gateway. */
export interface NextOptions {
  /** How long a client may leave an answer unread before it is disconnected, in milliseconds. Default 30,000. */
  readonly writeStall?: number;
}

const nextOptions: Schema<NextOptions> = z.strictObject({
  writeStall: z.exactOptional(milliseconds),
});

/**
 * Mounts a gateway on a catch-all route of the app router, in `app/ai/[...path]/route.ts`:
 * `export const { GET, POST, DELETE } = toNextHandlers(gateway)`. The route needs the Node.js runtime, which is Next's
 * default.
 * @throws GatewayError `invalid_configuration` without a gateway, or if `writeStall` isn't a positive integer
 */
export function toNextHandlers(gateway: Mountable, options: NextOptions = {}): NextHandlers {
  requireGateway(gateway, "toNextHandlers(gateway)");
  const { writeStall = 30_000 } = read(nextOptions, options, {
    code: "invalid_configuration",
    noun: "option",
  });
  // Next passes the parameters of the path as a second argument.
  const handle: Handler = async (request) => cutStalled(await gateway.fetch(request), writeStall);
  return { GET: handle, POST: handle, DELETE: handle };
}

/**
 * Returns the response with a body that fails if nobody reads for `writeStall` milliseconds. Next's own server would
 * wait forever for a client that doesn't read.
 */
function cutStalled(response: Response, writeStall: number): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  let stop = (): void => {};

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        stop();
        const { done, value } = await reader.read();
        if (done) return controller.close();
        controller.enqueue(value);
        const cut = (): void => {
          controller.error(new Error("The client didn't read the answer in time."));
          reader.cancel().catch(() => {});
        };
        stop = systemClock.after(writeStall, cut, { background: true });
      },
      async cancel(reason) {
        stop();
        await reader.cancel(reason);
      },
    },
    // Never read ahead of the client.
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers: response.headers });
}
