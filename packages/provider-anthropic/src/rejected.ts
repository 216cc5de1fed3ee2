import { ProviderError } from "@tollgate/core/provider";

/**
 * The Messages API has no form for this request. Nothing was sent, but a retry would fail the same way, so it counts as the
 * upstream's answer.
 */
export function rejected(message: string, param: string): ProviderError {
  return new ProviderError(message, {
    reason: "unsupported_request",
    delivery: "answered",
    status: 400,
    param,
  });
}
