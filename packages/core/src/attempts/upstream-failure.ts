import type { ProviderError } from "../contracts/provider.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { CallDeclined } from "./circuit-breaker.ts";
import { upstreamCode } from "./upstream-code.ts";

/**
 * Translates a provider's failure for the caller, in our words. A provider's 401 never becomes the caller's 401. Only codes
 * that clients react to are passed on.
 */
export function upstreamFailure(error: ProviderError): GatewayError {
  const { status } = error;
  if (error.reason === "connection_unavailable")
    return new GatewayError("connection_unavailable", error.message, { cause: error });
  if (error instanceof CallDeclined || error.reason === "gateway_closed")
    return new GatewayError(
      error.reason === "breaker_open" ? "upstream_error" : "overloaded",
      error.message,
      {
        status: 503,
        retry: error.delivery !== "unknown",
        headers: { "retry-after": seconds(error.retryAfterMs) },
        cause: error,
      },
    );
  const meaning = upstreamCode([error.code], null);
  if (meaning === "context_length_exceeded" || meaning === "content_filter")
    return rejected(error, meaning);
  if (status === 400 || status === 413 || status === 422) return rejected(error, null);
  if (status === 404 || status === 410) {
    return new GatewayError("model_not_found", "The provider doesn't have this model.", {
      param: "model",
      cause: error,
    });
  }
  if (status === 429 || meaning === "rate_limit_exceeded") {
    return new GatewayError(
      "rate_limit_exceeded",
      "The provider's rate limit was reached. Try again later.",
      {
        headers: { "retry-after": seconds(error.retryAfterMs) },
        cause: error,
      },
    );
  }
  const isOverloaded = meaning === "overloaded" || status === 503 || status === 529;
  return new GatewayError("upstream_error", isOverloaded ? overloaded : error.message, {
    status: isOverloaded ? 503 : statusOf(error),
    retry: error.delivery !== "unknown" && !isFinal(status),
    ...(error.retryAfterMs === null
      ? {}
      : { headers: { "retry-after": seconds(error.retryAfterMs) } }),
    cause: error,
  });
}

const overloaded = "The provider is overloaded. Try again later.";

/** Clients look for these words: agents shorten their history when they read the first. */
const rejections = {
  context_length_exceeded:
    "The request exceeds this model's maximum context length. Shorten its messages.",
  content_filter: "The provider's content filter rejected the request.",
} as const;

function rejected(error: ProviderError, meaning: keyof typeof rejections | null): GatewayError {
  const message = meaning === null ? "The provider rejected the request." : rejections[meaning];
  return new GatewayError("upstream_rejected", message, {
    ...(meaning === null ? {} : { wireCode: meaning }),
    ...(error.param === null ? {} : { param: error.param }),
    cause: error,
  });
}

/** A client error other than 408 would come back the next time. */
function isFinal(status: number | null): boolean {
  return status !== null && status >= 400 && status < 500 && status !== 408;
}

function statusOf({ status, timedOut }: ProviderError): number {
  return timedOut || status === 408 || status === 504 ? 504 : 502;
}

function seconds(milliseconds: number | null): string {
  return String(Math.max(1, Math.ceil((milliseconds ?? 1_000) / 1_000)));
}
