import type { ProviderError } from "../contracts/provider.ts";
import { CallDeclined } from "./circuit-breaker.ts";

/** When and how often to repeat a failed attempt. */
export interface RetryRules {
  /** How many more attempts to make on the same model. */
  readonly max: number;
  /**
   * The longest wait before the first retry, in milliseconds. Doubles with each further one. The wait is a random time
   * between half of that and all of it.
   */
  readonly backoff: number;
  /** If the wait would be longer than this, Tollgate doesn't retry. Milliseconds. */
  readonly maxWait: number;
  /** Whether to repeat a request whose outcome is unknown. The provider may then run it twice. */
  readonly allowDuplicates: boolean;
}

export const defaultRetryRules: RetryRules = {
  max: 2,
  backoff: 250,
  maxWait: 10_000,
  allowDuplicates: false,
};

/** Whether to try the same model again: nothing was sent, or the provider's error is temporary. */
export function mayRetry(error: ProviderError, rules: RetryRules): boolean {
  // Its model has no place for now, or its breaker is open.
  if (error instanceof CallDeclined) return false;
  if (error.delivery === "unknown") return rules.allowDuplicates;
  if (error.delivery === "not-sent") return true;
  return (
    error.status === 408 || error.status === 429 || (error.status !== null && error.status >= 500)
  );
}

/** Whether to try another model: for the same reasons, or if only this provider is at fault. */
export function mayFallBack(error: ProviderError, rules: RetryRules): boolean {
  return (
    mayRetry(error, rules) ||
    error instanceof CallDeclined ||
    (error.status !== null && [401, 402, 403, 404, 410].includes(error.status))
  );
}

/** How long to wait before retry number `retry` (from 0); null if that is too long. `spread` is 0 to 1. */
export function retryWait(
  error: ProviderError,
  rules: RetryRules,
  { retry, spread }: { readonly retry: number; readonly spread: number },
): number | null {
  const wait = error.retryAfterMs ?? rules.backoff * 2 ** retry * (0.5 + spread / 2);
  return wait <= rules.maxWait ? wait : null;
}
