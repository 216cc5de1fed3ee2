import { ProviderError } from "@tollgate/core/provider";

/** The upstream accepted the request and then broke its own protocol. Its work and its cost are unknown. */
export function invalidAnswer(reason: string, message: string, status = 200): ProviderError {
  return new ProviderError(message, { reason, delivery: "unknown", status });
}

/** The upstream sent an event that its protocol doesn't allow. */
export function invalidEvent(message: string): ProviderError {
  return invalidAnswer("invalid_event", message);
}

export function tooManyValues(): ProviderError {
  return invalidAnswer("too_many_values", "The provider's answer has too many values.");
}

/** A failure before anything was sent. */
export function notSent(reason: string, message: string, cause?: unknown): ProviderError {
  return new ProviderError(message, {
    reason,
    delivery: "not-sent",
    ...(cause === undefined ? {} : { cause }),
  });
}

export function misconfigured(): ProviderError {
  return notSent("misconfigured", "The provider is not configured correctly.");
}

/** The request had no connection in time. */
export function connectTimeout(): ProviderError {
  return new ProviderError("The provider could not be reached.", {
    reason: "connect_timeout",
    delivery: "not-sent",
    timedOut: true,
  });
}

/**
 * A network failure. `sent` is whether the request had a connection: only before that is it certain that nothing was
 * sent. The cause contains hosts and network error codes, never the upstream's own text.
 */
export function transportFailure(
  error: Error,
  { sent, status }: { readonly sent: boolean; readonly status: number | null },
): ProviderError {
  const code = codeOf(error);
  const reason = sent ? reasonAfterSending(code) : reasonBeforeSending(code);
  return new ProviderError(
    sent
      ? "The connection to the provider broke before its answer was complete."
      : "The provider could not be reached.",
    {
      reason,
      delivery: sent ? "unknown" : "not-sent",
      status,
      timedOut: code.endsWith("_TIMEOUT") || code === "ETIMEDOUT",
      cause: error,
    },
  );
}

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

function reasonBeforeSending(code: string): string {
  if (code === "ECONNREFUSED") return "connection_refused";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "dns_failed";
  if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT") return "connect_timeout";
  if (code === "UND_ERR_DESTROYED" || code === "UND_ERR_CLOSED") return "provider_closed";
  return /CERT|TLS|SSL/.test(code) ? "tls_failed" : "connect_failed";
}

function reasonAfterSending(code: string): string {
  if (code === "ECONNRESET" || code === "EPIPE") return "connection_reset";
  if (code === "UND_ERR_SOCKET") return "connection_closed";
  if (code === "UND_ERR_HEADERS_OVERFLOW") return "headers_too_large";
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT")
    return "upstream_timeout";
  if (code === "UND_ERR_DESTROYED") return "provider_closed";
  if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH") return "invalid_http";
  return code.startsWith("HPE_") ? "invalid_http" : "connection_failed";
}
