import { milliseconds, read, type Schema, z } from "@tollgate/core/schemas";
import { defaultServerLimits } from "./server-limits.ts";

/** Bounds of the bridge itself; a gateway's own limits are configured on the gateway. */
export interface NodeHandlerOptions {
  /** How long a client may leave an answer unread, in milliseconds; it is cut off then. Default 30,000. */
  readonly writeStall?: number;
}

const handlerOptions: Schema<NodeHandlerOptions> = z.strictObject({
  writeStall: z.exactOptional(milliseconds),
});

/**
 * The bounds of a bridge with their defaults, refused when a host starts rather than at its first request.
 * @throws GatewayError `invalid_configuration`, with every problem and its path.
 */
export function requireHandlerOptions(options: NodeHandlerOptions): Required<NodeHandlerOptions> {
  const checked = read(handlerOptions, options, {
    code: "invalid_configuration",
    noun: "option",
  });
  return { writeStall: defaultServerLimits.writeStall, ...checked };
}
