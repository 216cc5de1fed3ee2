import type { RequestHandlers } from "./endpoints/request-handlers.ts";
import { GatewayError } from "./errors/gateway-error.ts";

/**
 * For bindings: refuses, when a host starts, what is neither a gateway nor one as a caller sees it, instead of failing at its first request. `call`
 * is what the embedder wrote, for the message: `tollgate(gateway)`.
 * @throws GatewayError `invalid_configuration`
 */
export function requireGateway(value: unknown, call: string): asserts value is RequestHandlers {
  if (typeof value === "object" && value !== null) {
    if ("answer" in value && typeof value.answer === "function" && "fetch" in value) return;
    if ("then" in value) throw wrong(call, "a promise: await it first");
  }
  throw wrong(call, value === undefined ? "nothing" : kindOf(value));
}

function wrong(call: string, given: string): GatewayError {
  const message = `${call} needs what createGateway returns, and was given ${given}.`;
  return new GatewayError("invalid_configuration", message);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return typeof value === "object" ? "another object" : `a ${typeof value}`;
}
