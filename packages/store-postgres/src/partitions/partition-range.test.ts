import { createRandomIds } from "@tollgate/core";
import { expect, it } from "vitest";
import { boundAt, missingRanges, partitionName, rangeOf } from "./partition-range.ts";

const day = 86_400_000;
const now = Date.UTC(2026, 0, 5, 12);

it("bounds a time as ids of UUID version 7 begin", () => {
  const before = Date.now();
  const id = createRandomIds().uuid();
  expect(id >= boundAt(before)).toBe(true);
  expect(id < boundAt(Date.now() + 1)).toBe(true);
  expect(boundAt(0)).toBe("00000000-0000");
});

it("reads back the bounds that the server tells, and none of the rest", () => {
  const stretch = { from: now, until: now + day };
  const bounds = `FOR VALUES FROM ('${boundAt(now)}') TO ('${boundAt(now + day)}')`;
  expect(rangeOf(bounds)).toEqual(stretch);
  expect(rangeOf("DEFAULT")).toBeNull();
  expect(partitionName(stretch)).toBe("steps_20260105");
});

it("makes partitions of a sixth of the time that is kept, in whole days, none within a day from now", () => {
  const missing = missingRanges([], { now, keep: 90 * day });
  const first = Date.UTC(2026, 0, 7);
  expect(missing).toEqual([
    { from: first, until: first + 15 * day },
    { from: first + 15 * day, until: first + 30 * day },
  ]);
  expect(missingRanges([], { now, keep: 1 })).toEqual([{ from: first, until: first + day }]);
});

it("goes on where the last one ends, and has a bounded number of them whatever is kept", () => {
  for (const days of [1, 6, 30, 395, 3_650]) {
    let known: ReturnType<typeof missingRanges> = [];
    for (let at = now; at < now + 2 * days * day; at += Math.max(day / 2, (days * day) / 50)) {
      known = [...known, ...missingRanges(known, { now: at, keep: days * day })].filter(
        ({ until }) => until > at - days * day,
      );
      known.reduce((last, stretch) => {
        expect(stretch.from).toBe(last.until);
        return stretch;
      });
      expect(known.length).toBeLessThanOrEqual(10);
      expect(known.at(-1)?.until).toBeGreaterThan(at + day);
    }
  }
});

it("begins again after a long time without partitions", () => {
  const old = { from: now - 90 * day, until: now - 60 * day };
  expect(missingRanges([old], { now, keep: 30 * day })[0]?.from).toBe(Date.UTC(2026, 0, 7));
});
