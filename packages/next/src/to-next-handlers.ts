import { type Gateway, type Handler, requireGateway } from "@tollgate/core";

/** The route handlers of every method the gateway takes. Next answers any other method itself. */
export interface NextHandlers {
  readonly GET: Handler;
  readonly POST: Handler;
  readonly DELETE: Handler;
}

/**
 * Mounts a gateway on a catch-all route of the app router, in `app/ai/[...path]/route.ts`:
 * `export const { GET, POST, DELETE } = toNextHandlers(gateway)`. Route handlers speak web requests, so nothing stands
 * between; the route needs the Node.js runtime, which is Next's default.
 * @throws GatewayError `invalid_configuration` when it is not given a gateway.
 */
export function toNextHandlers(gateway: Gateway): NextHandlers {
  requireGateway(gateway, "toNextHandlers(gateway)");
  // Next passes the parameters of the path as a second argument.
  const handle: Handler = (request) => gateway.fetch(request);
  return { GET: handle, POST: handle, DELETE: handle };
}
