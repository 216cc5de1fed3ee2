import type { ErrorFormat } from "@tollgate/provider-http";

export const errorFormat: ErrorFormat = {
  codeMember: "type",
  statuses: new Map([
    ["invalid_request_error", 400],
    ["authentication_error", 401],
    ["billing_error", 402],
    ["permission_error", 403],
    ["not_found_error", 404],
    ["request_too_large", 413],
    ["rate_limit_error", 429],
    ["api_error", 500],
    ["timeout_error", 504],
    ["overloaded_error", 529],
  ]),
};

const limits = ["requests", "tokens", "input-tokens", "output-tokens"] as const;
const timestamp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;
const maxWaitMs = 3_600_000;

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * How long until every used-up rate limit of an answer's `anthropic-ratelimit-*` headers is full again, in milliseconds, at
 * most an hour. Null if none is used up, or no header says when.
 */
export function rateLimitWait(headers: Headers, now: number): number | null {
  const waits = limits.flatMap((limit) => {
    if (headers[`anthropic-ratelimit-${limit}-remaining`] !== "0") return [];
    const reset = headers[`anthropic-ratelimit-${limit}-reset`];
    const at = typeof reset === "string" && timestamp.test(reset) ? Date.parse(reset) : Number.NaN;
    return Number.isNaN(at) ? [] : [Math.min(Math.max(0, at - now), maxWaitMs)];
  });
  return waits.length === 0 ? null : Math.max(...waits);
}
