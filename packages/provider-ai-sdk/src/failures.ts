import { ProviderError } from "@tollgate/core/provider";

/** A failure before anything was sent. */
export function notSent(reason: string, message: string): ProviderError {
  return new ProviderError(message, { reason, delivery: "not-sent" });
}

/**
 * The model doesn't support this request. Nothing was sent, but a retry would fail the same way, so it counts as the
 * upstream's answer.
 */
export function rejected(
  message: string,
  details: { readonly status?: 400 | 404; readonly param?: string } = {},
): ProviderError {
  const { status = 400, param = null } = details;
  return new ProviderError(message, {
    reason: "unsupported_request",
    delivery: "answered",
    status,
    param,
  });
}

/** The upstream accepted the request and then broke its own protocol. Its work and its cost are unknown. */
export function invalidAnswer(reason: string, message: string): ProviderError {
  return new ProviderError(message, { reason, delivery: "unknown", status: 200 });
}

export function limitExceeded(reason: string): ProviderError {
  return invalidAnswer(reason, "The provider's answer is too large.");
}

// Only these codes mean for certain that there was never a connection.
const neverConnected =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_\w+|\w*CERT\w*|UNABLE_TO_\w+)$/;

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection_refused",
  ENOTFOUND: "dns_failed",
  EAI_AGAIN: "dns_failed",
  UND_ERR_CONNECT_TIMEOUT: "connect_timeout",
  ECONNRESET: "connection_reset",
  EPIPE: "connection_reset",
  UND_ERR_SOCKET: "connection_closed",
  UND_ERR_DESTROYED: "provider_closed",
  UND_ERR_CLOSED: "provider_closed",
};

/** Returns the ProviderError for a network failure, or null for any other error. */
export function transportFailure(error: unknown): ProviderError | null {
  const network = networkError(error);
  if (network === null) return null;
  const { code, cause } = network;
  const unsent = neverConnected.test(code);
  return new ProviderError(
    unsent
      ? "The provider could not be reached."
      : "The connection to the provider broke before its answer was complete.",
    {
      reason: reasons[code] ?? (unsent ? "connect_failed" : "connection_failed"),
      delivery: unsent ? "not-sent" : "unknown",
      timedOut: code.includes("TIMEOUT") || code === "ETIMEDOUT",
      cause,
    },
  );
}

// `fetch` wraps the network error, and the AI SDK wraps it again.
const maxWrappers = 5;

function networkError(error: unknown): { readonly code: string; readonly cause: Error } | null {
  let inner = error;
  for (let depth = 0; depth < maxWrappers && inner instanceof Error; depth++) {
    const { cause } = inner;
    if ("code" in inner && typeof inner.code === "string")
      return { code: inner.code, cause: inner };
    if (cause === undefined && inner.message === "terminated") return { code: "", cause: inner };
    inner = cause;
  }
  return null;
}
