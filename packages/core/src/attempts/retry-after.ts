const maxWaitMs = 3_600_000;

type HeaderValue = string | readonly string[] | undefined;

/**
 * How long an upstream asks to wait, in milliseconds, at most an hour. Reads `retry-after-ms`, otherwise `retry-after` in
 * seconds or as a date. Null without a valid value. `headers` has lower-case names; `now` is milliseconds since the epoch.
 */
export function retryAfterMs(
  headers: Readonly<Record<string, HeaderValue>>,
  now: number,
): number | null {
  const { "retry-after-ms": milliseconds, "retry-after": either } = headers;
  const wait = number(milliseconds, 1) ?? number(either, 1_000) ?? date(either, now);
  return wait === null ? null : Math.min(wait, maxWaitMs);
}

function number(value: HeaderValue, unit: number): number | null {
  return typeof value === "string" && /^\d{1,12}(\.\d{1,6})?$/.test(value)
    ? Math.ceil(Number(value) * unit)
    : null;
}

function date(value: HeaderValue, now: number): number | null {
  // Date.parse reads far more than HTTP dates, such as "-1".
  if (typeof value !== "string" || !/^[A-Z][a-z]{2}, .{10,30} GMT$/.test(value)) return null;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
