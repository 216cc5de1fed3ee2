import { expect, it } from "vitest";
import { createPaces } from "./paces.ts";

it("a pace allows its burst at once, and then one in each interval, of the latest owners", () => {
  let now = 5;
  const clock = { now: () => now, monotonic: () => now, after: () => () => {} };
  const { take } = createPaces(clock, { burst: 2, interval: 100, maxOwners: 2 });
  expect([take("a"), take("a"), take("a")]).toEqual([null, null, 100]);
  now += 99;
  expect(take("a")).toBe(1);
  now += 1;
  expect([take("a"), take("a")]).toEqual([null, 100]);
  // A third owner makes it forget the one that was counted longest ago.
  expect([take("b"), take("b"), take("a")]).toEqual([null, null, 100]);
  expect([take("c"), take("b"), take("a")]).toEqual([null, 100, null]);
});
