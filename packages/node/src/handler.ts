import type { GatewayRequest, GatewayResponse } from "@tollgate/core";

/** Anything that answers a web `Request` with a `Response`: a gateway, a Hono app. */
export interface FetchHandler {
  fetch(request: Request): Response | Promise<Response>;
}

/** A handler whose answers can be written without building a `Response` first: what `createGateway` returns. */
export interface AnswerHandler {
  answer(request: GatewayRequest): Promise<GatewayResponse>;
}
