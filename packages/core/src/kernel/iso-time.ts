/** A day in UTC, or a time with its UTC offset. Without an offset, it would mean another time on another machine. */
const isoTime =
  /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** An ISO 8601 time in milliseconds since the epoch; null for anything else. */
export function isoToMilliseconds(time: string): number | null {
  const [, day = ""] = isoTime.exec(time) ?? [];
  const at = isDay(day) ? Date.parse(time) : Number.NaN;
  return Number.isSafeInteger(at) ? at : null;
}

/** JavaScript reads February 31 as a day of March. */
function isDay(day: string): boolean {
  const at = Date.parse(day);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
}
