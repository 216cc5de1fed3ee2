import type { Caller } from "../domain/caller.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import { durable } from "./durable.ts";
import type { Line } from "./line.ts";

/** Whether a gateway can be reached for a caller: a customer-owned one with the organization's own credential alone. */
export function isConnected(
  { credentials }: Line,
  { organizationId }: Caller,
  { gateway, connection }: { readonly gateway: string; readonly connection: ConnectionOwnership },
): boolean | Promise<boolean> {
  return connection === "platform" || durable(credentials.has({ organizationId, gateway }));
}
