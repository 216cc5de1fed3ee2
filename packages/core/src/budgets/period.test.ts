import { expect, it } from "vitest";
import { periodEnd, periodStart } from "./period.ts";

it.each([
  ["hour", "2026-03-01T13:00:00.000Z", "2026-03-01T14:00:00.000Z"],
  ["day", "2026-03-01T00:00:00.000Z", "2026-03-02T00:00:00.000Z"],
  // A Sunday is the last day of its week.
  ["week", "2026-02-23T00:00:00.000Z", "2026-03-02T00:00:00.000Z"],
  ["month", "2026-03-01T00:00:00.000Z", "2026-04-01T00:00:00.000Z"],
  ["total", "1970-01-01T00:00:00.000Z", null],
] as const)("the %s around a time begins at %s and ends at %s", (period, start, end) => {
  const at = Date.UTC(2026, 2, 1, 13, 59, 59, 999);
  const begins = periodStart(period, at);
  const ends = periodEnd(period, begins);
  expect([begins, ends].map((time) => time && new Date(time).toISOString())).toEqual([
    start === "1970-01-01T00:00:00.000Z" ? 0 : start,
    end,
  ]);
  expect(periodStart(period, begins)).toBe(begins);
});
