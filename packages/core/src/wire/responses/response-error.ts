import type { GatewayError } from "../../errors/gateway-error.ts";

/** The error of a failed response. Its code is from the closed list that clients know, not one of the gateway's. */
export interface ResponseError {
  readonly code: "server_error" | "rate_limit_exceeded" | "invalid_prompt";
  readonly message: string;
}

export function responseError({ status, message }: GatewayError): ResponseError {
  if (status === 429) return { code: "rate_limit_exceeded", message };
  return { code: status < 500 ? "invalid_prompt" : "server_error", message };
}
