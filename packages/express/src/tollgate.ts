import type { ServerResponse } from "node:http";
import { type GatewayResponse, type RequestHandlers, requireGateway } from "@tollgate/core";
import {
  type IncomingRequest,
  type NodeHandlerOptions,
  requireHandlerOptions,
  sendAnswer,
  toRequest,
} from "@tollgate/node";

/** Bounds of the binding itself; a gateway's own limits are configured on the gateway. */
export type ExpressOptions = NodeHandlerOptions;

/** What `app.use` of Express 4 and 5 takes. */
export type Middleware = (
  incoming: IncomingRequest,
  outgoing: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/**
 * Mounts a gateway on an Express app: `app.use("/ai", tollgate(gateway))`. It answers everything below its prefix.
 * A failure of the gateway is an answer; what fails beside it goes to the error handlers of the app. Mount it before
 * the body parser: a parsed body has lost what the parser let through, such as a member given twice.
 * @throws GatewayError `invalid_configuration` when it is not given a gateway, or `writeStall` is no whole number from 1.
 */
export function tollgate(gateway: RequestHandlers, options: ExpressOptions = {}): Middleware {
  requireGateway(gateway, "tollgate(gateway)");
  const { writeStall } = requireHandlerOptions(options);

  return (incoming, outgoing, next) => {
    const request = toRequest(incoming, outgoing);
    const respond = async (): Promise<void> =>
      sendAnswer(outgoing, untransformed(await gateway.answer(request)), writeStall);
    respond().catch((error: unknown) => {
      // Nobody is there to be told of a client that left.
      if (!request.signal.aborted) next(error);
    });
  };
}

/** A stream that says it may not be compressed: `compression` would keep its events until it ends. */
function untransformed(answer: GatewayResponse): GatewayResponse {
  if (typeof answer.body === "string") return answer;
  const headers = { ...answer.headers, "cache-control": "no-cache, no-transform" };
  return { ...answer, headers };
}
