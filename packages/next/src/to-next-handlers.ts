import { type Handler, type RequestHandlers, requireGateway } from "@tollgate/core";
import { milliseconds, read, type Schema, z } from "@tollgate/core/schemas";

/** The route handlers of every method the gateway takes. Next answers any other method itself. */
export interface NextHandlers {
  readonly GET: Handler;
  readonly POST: Handler;
  readonly DELETE: Handler;
}

/** Bounds of the binding itself; a gateway's own limits are configured on the gateway. */
export interface NextOptions {
  /** How long a client may leave an answer unread, in milliseconds; it is cut off then. Default 30,000. */
  readonly writeStall?: number;
}

const nextOptions: Schema<NextOptions> = z.strictObject({
  writeStall: z.exactOptional(milliseconds),
});

/**
 * Mounts a gateway on a catch-all route of the app router, in `app/ai/[...path]/route.ts`:
 * `export const { GET, POST, DELETE } = toNextHandlers(gateway)`. Route handlers speak web requests, so no bridge stands
 * between; the route needs the Node.js runtime, which is Next's default.
 * @throws GatewayError `invalid_configuration` when it is not given a gateway, or `writeStall` is no whole number from 1.
 */
export function toNextHandlers(gateway: RequestHandlers, options: NextOptions = {}): NextHandlers {
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
 * The same response, whose body breaks off when nobody has asked for its next piece within `writeStall` milliseconds:
 * Next's own server would wait for ever for a client that does not read.
 */
function cutStalled(response: Response, writeStall: number): Response {
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
