import type { Caller } from "../domain/caller.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { GatewayContext } from "./context.ts";
import { orUnavailable } from "./durable.ts";

/** Whether a gateway can be reached for a caller: a customer-owned one with the organization's own credential alone. */
export function isConnected(
  { credentials }: GatewayContext,
  { organizationId }: Caller,
  { gateway, connection }: { readonly gateway: string; readonly connection: ConnectionOwnership },
): boolean | Promise<boolean> {
  return connection === "platform" || orUnavailable(credentials.has({ organizationId, gateway }));
}
