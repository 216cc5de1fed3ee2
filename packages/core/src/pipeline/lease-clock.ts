import type { LeaseClock } from "../contracts/step-verbs.ts";
import { systemClock } from "../kernel/clock.ts";
import type { GatewayContext } from "./context.ts";

/** The store's own, unless the gateway was given a clock to go by. */
export function leaseClockOf({ clock }: Pick<GatewayContext, "clock">): LeaseClock {
  return clock === systemClock ? "store" : "gateway";
}
