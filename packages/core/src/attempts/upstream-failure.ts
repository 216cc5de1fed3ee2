import type { ProviderError } from "../contracts/provider.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** A provider's failure as the caller sees it. A provider's 401 is never the caller's 401. */
export function upstreamFailure(error: ProviderError): GatewayError {
  const { status } = error;
  if (error.reason === "connection_unavailable")
    return new GatewayError("connection_unavailable", error.message, { cause: error });
  if (status === 400 || status === 413 || status === 422) return rejected(error);
  if (status === 404 || status === 410) {
    return new GatewayError("model_not_found", "The provider does not know this model.", {
      param: "model",
      cause: error,
    });
  }
  if (status === 429) {
    return new GatewayError("rate_limit_exceeded", "The provider's rate limit is reached.", {
      headers: { "retry-after": seconds(error.retryAfterMs) },
      cause: error,
    });
  }
  return new GatewayError("upstream_error", error.message, {
    status: statusOf(error),
    retry: error.delivery !== "unknown" && !isFinal(status),
    ...(error.retryAfterMs === null
      ? {}
      : { headers: { "retry-after": seconds(error.retryAfterMs) } }),
    cause: error,
  });
}

function rejected(error: ProviderError): GatewayError {
  return new GatewayError("upstream_rejected", "The provider rejected the request.", {
    ...(error.code === null ? {} : { wireCode: error.code }),
    ...(error.param === null ? {} : { param: error.param }),
    cause: error,
  });
}

/** A status of the caller's side, other than 408, will be the same the next time. */
function isFinal(status: number | null): boolean {
  return status !== null && status >= 400 && status < 500 && status !== 408;
}

function statusOf({ status, timedOut }: ProviderError): number {
  if (timedOut || status === 408 || status === 504) return 504;
  return status === 503 || status === 529 ? 503 : 502;
}

function seconds(milliseconds: number | null): string {
  return String(Math.max(1, Math.ceil((milliseconds ?? 1_000) / 1_000)));
}
