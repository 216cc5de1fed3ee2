import type { GatewayRequest, GatewayResponse } from "@tollgate/core";

/** Anything that answers a web `Request` with a `Response`, such as a gateway or a Hono app. */
export interface FetchHandler {
  fetch(request: Request): Response | Promise<Response>;
}

/** A handler whose answers can be sent without a `Response`, such as a gateway. */
export interface AnswerHandler {
  answer(request: GatewayRequest): Promise<GatewayResponse>;
}
