import { milliseconds, read, type Schema, z } from "@tollgate/core/schemas";
import { defaultServerLimits } from "./server-limits.ts";

/** Limits of the Node.js handler. Configure the gateway's own limits on the gateway. */
export interface NodeHandlerOptions {
  /** How long a client may leave an answer unread before it is disconnected, in milliseconds. Default 30,000. */
  readonly writeStall?: number;
}

const handlerOptions: Schema<NodeHandlerOptions> = z.strictObject({
  writeStall: z.exactOptional(milliseconds),
});

/**
 * Checks the limits and adds the defaults. Hosts call it at startup, so invalid limits fail before the first request.
 * @throws GatewayError `invalid_configuration`, with every problem and its path.
 */
export function requireHandlerOptions(options: NodeHandlerOptions): Required<NodeHandlerOptions> {
  const checked = read(handlerOptions, options, {
    code: "invalid_configuration",
    noun: "option",
  });
  return { writeStall: defaultServerLimits.writeStall, ...checked };
}
