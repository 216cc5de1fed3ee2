import { errorBody, type GatewayError } from "../errors/gateway-error.ts";
import type { GatewayResponse } from "./gateway-response.ts";

/** A failure as a plain answer, whatever form was asked for. */
export function errorAnswer(error: GatewayError): GatewayResponse {
  return {
    status: error.status,
    headers: { ...error.headers, "content-type": "application/json" },
    body: errorBody(error),
  };
}
