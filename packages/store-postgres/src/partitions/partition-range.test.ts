import { createRandomIds } from "@tollgate/core";
import { expect, it } from "vitest";
import { boundAt, missingRanges, partitionName, rangeOf } from "./partition-range.ts";

const day = 86_400_000;
const now = Date.UTC(2026, 0, 5, 12);

it("turns a time into the bound of its version 7 UUIDs", () => {
  const before = Date.now();
  const id = createRandomIds().uuid();
  expect(id >= boundAt(before)).toBe(true);
  expect(id < boundAt(Date.now() + 1)).toBe(true);
  expect(boundAt(0)).toBe("00000000-0000");
});

it("reads the bounds that the server prints, and null for the default partition", () => {
  const range = { from: now, until: now + day };
  const bounds = `FOR VALUES FROM ('${boundAt(now)}') TO ('${boundAt(now + day)}')`;
  expect(rangeOf(bounds)).toEqual(range);
  expect(rangeOf("DEFAULT")).toBeNull();
  expect(partitionName(range)).toBe("steps_20260105");
});

it("creates partitions of a sixth of the retention, in whole days, from a day ahead", () => {
  const missing = missingRanges([], { now, keep: 90 * day });
  const first = Date.UTC(2026, 0, 7);
  expect(missing).toEqual([
    { from: first, until: first + 15 * day },
    { from: first + 15 * day, until: first + 30 * day },
  ]);
  expect(missingRanges([], { now, keep: 1 })).toEqual([{ from: first, until: first + day }]);
});

it("continues where the last partition ends, and bounds their number for any retention", () => {
  for (const days of [1, 6, 30, 395, 3_650]) {
    let known: ReturnType<typeof missingRanges> = [];
    for (let at = now; at < now + 2 * days * day; at += Math.max(day / 2, (days * day) / 50)) {
      known = [...known, ...missingRanges(known, { now: at, keep: days * day })].filter(
        ({ until }) => until > at - days * day,
      );
      known.reduce((last, range) => {
        expect(range.from).toBe(last.until);
        return range;
      });
      expect(known.length).toBeLessThanOrEqual(10);
      expect(known.at(-1)?.until).toBeGreaterThan(at + day);
    }
  }
});

it("starts a day ahead again after a long time without partitions", () => {
  const old = { from: now - 90 * day, until: now - 60 * day };
  expect(missingRanges([old], { now, keep: 30 * day })[0]?.from).toBe(Date.UTC(2026, 0, 7));
});
