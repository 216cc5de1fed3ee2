import type { GatewayError } from "../../errors/gateway-error.ts";

/** The types of the Messages API for the codes whose status doesn't determine it. */
const typesOfCodes: Readonly<Record<string, string>> = {
  budget_exceeded: "billing_error",
  overloaded: "overloaded_error",
};

const typesOfStatuses: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
};

/** Agents shorten their history when they read these words of the Messages API. */
const tooLong = "prompt is too long: it exceeds this model's maximum context length.";

/** Anthropic's SDKs continue without a thread when they read this. */
const unthreaded = { error_code: "thread_unsupported_request", unsupported: ["thread"] };

/** The body of an error on the paths of the Messages API, and the data of an `error` event, as JSON. */
export function messagesErrorBody(error: GatewayError, requestId: string): string {
  const message = error.wireCode === "context_length_exceeded" ? tooLong : error.message;
  return JSON.stringify({
    type: "error",
    error: {
      type: typeOf(error),
      message,
      details: error.param === "thread" ? unthreaded : undefined,
    },
    request_id: requestId,
  });
}

function typeOf({ code, status }: GatewayError): string {
  const known = typesOfCodes[code] ?? typesOfStatuses[status];
  if (known !== undefined) return known;
  if (status < 500) return "invalid_request_error";
  return code === "upstream_error" && status === 503 ? "overloaded_error" : "api_error";
}
