import { GatewayError } from "@tollgate/core";
import { defaultServerLimits } from "./server-limits.ts";

/** Bounds of the bridge itself; a gateway's own limits are configured on the gateway. */
export interface NodeHandlerOptions {
  /** How long a client may leave an answer unread, in milliseconds; it is cut off then. Default 30,000. */
  readonly writeStall?: number;
}

/**
 * The bounds of a bridge with their defaults, refused when a host starts rather than at its first request.
 * @throws GatewayError `invalid_configuration`
 */
export function requireHandlerOptions(options: NodeHandlerOptions): Required<NodeHandlerOptions> {
  const { writeStall = defaultServerLimits.writeStall } = options;
  if (Number.isSafeInteger(writeStall) && writeStall > 0) return { writeStall };
  throw new GatewayError(
    "invalid_configuration",
    `writeStall must be a positive integer of milliseconds, not ${JSON.stringify(writeStall)}.`,
  );
}
