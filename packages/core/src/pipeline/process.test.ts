import { expect, it } from "vitest";
import { systemClock } from "../kernel/clock.ts";
import { leaseClockOf } from "./process.ts";

it("leaves leases to the store's clock, unless the gateway was given one", () => {
  expect(leaseClockOf({ clock: systemClock })).toBe("store");
  expect(leaseClockOf({ clock: { ...systemClock } })).toBe("gateway");
});
