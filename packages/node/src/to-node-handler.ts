import type { ServerResponse } from "node:http";
import type { GatewayRequest, GatewayResponse } from "@tollgate/core";
import { type NodeHandlerOptions, requireHandlerOptions } from "./handler-options.ts";
import { refuse } from "./refuse.ts";
import { cutOff, send, sendAnswer } from "./send-answer.ts";
import { type IncomingRequest, toRequest } from "./to-request.ts";

/** Anything that answers a web `Request` with a `Response`, such as a gateway or a Hono app. */
export interface FetchHandler {
  fetch(request: Request): Response | Promise<Response>;
}

/** A handler whose answers can be sent without a `Response`, such as a gateway. */
export interface AnswerHandler {
  answer(request: GatewayRequest): Promise<GatewayResponse>;
}

/**
 * Mounts a gateway, or any fetch handler, on `node:http`: `createServer(toNodeHandler(gateway))`. The handler never
 * throws and its promise never rejects: a failure before the headers is a 500, and a later one closes the connection.
 * @throws GatewayError `invalid_configuration` if `writeStall` isn't a positive integer
 */
export function toNodeHandler(
  gateway: FetchHandler | AnswerHandler,
  options: NodeHandlerOptions = {},
): (incoming: IncomingRequest, outgoing: ServerResponse) => Promise<void> {
  const { writeStall } = requireHandlerOptions(options);
  return async (incoming, outgoing) => {
    try {
      const request = toRequest(incoming, outgoing);
      if ("answer" in gateway)
        await sendAnswer(outgoing, await gateway.answer(request), writeStall);
      else await send(outgoing, await gateway.fetch(request.toWeb()), writeStall);
    } catch {
      if (outgoing.headersSent || outgoing.destroyed) cutOff(outgoing);
      else refuse(outgoing, "internal_error");
    }
  };
}
