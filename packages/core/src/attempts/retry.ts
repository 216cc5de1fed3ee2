import type { ProviderError } from "../contracts/provider.ts";

/** How often and when a failed attempt is made again. */
export interface RetryRules {
  /** Further attempts on the same model. */
  readonly max: number;
  /** Milliseconds before the first retry; doubled for each further one. */
  readonly backoff: number;
  /** A longer wait than this is not waited for. Milliseconds. */
  readonly maxWait: number;
  /** Whether a request whose outcome is unknown may be sent again, and so be made twice. */
  readonly allowDuplicates: boolean;
}

export const defaultRetryRules: RetryRules = {
  max: 2,
  backoff: 250,
  maxWait: 10_000,
  allowDuplicates: false,
};

/** Whether the same model may be asked again: nothing was sent, or the provider said to come back. */
export function mayRetry(error: ProviderError, rules: RetryRules): boolean {
  if (error.delivery === "unknown") return rules.allowDuplicates;
  if (error.delivery === "not-sent") return true;
  return (
    error.status === 408 || error.status === 429 || (error.status !== null && error.status >= 500)
  );
}

/** Whether another model may be asked: all of the above, and what is this provider's own trouble. */
export function mayFallBack(error: ProviderError, rules: RetryRules): boolean {
  return (
    mayRetry(error, rules) ||
    (error.status !== null && [401, 402, 403, 404, 410].includes(error.status))
  );
}

/** How long to wait before retry number `retry` (from 0), or null when it would be too long. `spread` is 0 to 1. */
export function retryWait(
  error: ProviderError,
  rules: RetryRules,
  { retry, spread }: { readonly retry: number; readonly spread: number },
): number | null {
  const wait = error.retryAfterMs ?? rules.backoff * 2 ** retry * (0.5 + spread / 2);
  return wait <= rules.maxWait ? wait : null;
}
