import { expect, it } from "vitest";
import { systemClock } from "../kernel/clock.ts";
import { leaseClockOf } from "./process.ts";

it("uses the store's clock for leases, unless the gateway was given one", () => {
  expect(leaseClockOf({ clock: systemClock })).toBe("store");
  expect(leaseClockOf({ clock: { ...systemClock } })).toBe("gateway");
});
