import type { ServerResponse } from "node:http";
import { type GatewayResponse, type Mountable, requireGateway } from "@tollgate/core";
import {
  type IncomingRequest,
  type NodeHandlerOptions,
  requireHandlerOptions,
  sendAnswer,
  toRequest,
} from "@tollgate/node";

/** Limits of the middleware. Configure the gateway's own limits on the gateway. */
export type ExpressOptions = NodeHandlerOptions;

/** Middleware for Express 4 and 5. */
export type Middleware = (
  incoming: IncomingRequest,
  outgoing: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/**
 * Mounts a gateway on an Express app: `app.use("/ai", tollgate(gateway))`. It answers everything below its prefix. The
 * gateway's errors are answers. Other errors go to the app's error handlers. Mount it before the body parser: a parsed body
 * hides mistakes such as repeated members.
 * @throws GatewayError `invalid_configuration` without a gateway, or if `writeStall` isn't a positive integer
 */
export function tollgate(gateway: Mountable, options: ExpressOptions = {}): Middleware {
  requireGateway(gateway, "tollgate(gateway)");
  const { writeStall } = requireHandlerOptions(options);

  return (incoming, outgoing, next) => {
    const request = toRequest(incoming, outgoing);
    const respond = async (): Promise<void> =>
      sendAnswer(outgoing, untransformed(await gateway.answer(request)), writeStall);
    respond().catch((error: unknown) => {
      // A client that disconnected needs no error page.
      if (!request.signal.aborted) next(error);
    });
  };
}

/** An event stream says that it may not be compressed: `compression` would keep its events until it ends. */
function untransformed(answer: GatewayResponse): GatewayResponse {
  if (!answer.headers["content-type"]?.startsWith("text/event-stream")) return answer;
  const headers = { ...answer.headers, "cache-control": "no-cache, no-transform" };
  return { ...answer, headers };
}
