const longest = 3_600_000;

/** How long an upstream asks to wait, in milliseconds, at most an hour; null when it does not say, or says nonsense. */
export function retryAfterMs(
  headers: Readonly<Record<string, string | undefined>>,
  now: number,
): number | null {
  const { "retry-after-ms": milliseconds, "retry-after": either } = headers;
  const wait = number(milliseconds, 1) ?? number(either, 1_000) ?? date(either, now);
  return wait === null ? null : Math.min(wait, longest);
}

function number(value: string | undefined, unit: number): number | null {
  return value !== undefined && /^\d{1,12}(\.\d{1,6})?$/.test(value)
    ? Math.ceil(Number(value) * unit)
    : null;
}

function date(value: string | undefined, now: number): number | null {
  // Date.parse reads far more than dates of HTTP, such as "-1".
  if (value === undefined || !/^[A-Z][a-z]{2}, .{10,30} GMT$/.test(value)) return null;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
