import { describe, expect, it } from "vitest";
import { fromIso } from "./tenant.ts";

describe("a time as an argument", () => {
  it.each([
    ["2026-02-28", "2026-02-28T00:00:00.000Z"],
    ["2024-02-29T23:59Z", "2024-02-29T23:59:00.000Z"],
    ["2026-01-31T18:00:00.5Z", "2026-01-31T18:00:00.500Z"],
    ["2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000Z"],
  ])("%s is the same moment in every time zone of the machine", (time, moment) => {
    expect(new Date(fromIso(time)).toISOString()).toBe(moment);
  });

  it.each([
    "",
    "yesterday",
    "2026",
    "2026-02-30",
    "2026-13-01",
    "2026-01-01T25:00:00Z",
    "2026-01-01T00:00:00",
    "2026-01-01 00:00",
    "2026-01-01 10:00 PM",
    "2026-01-01T00:00:00Z, or so",
  ])("%j is refused", (time) => {
    expect(fromIso(time)).toBeNaN();
  });
});
