import type { ServerResponse } from "node:http";
import type { AnswerHandler, FetchHandler } from "./handler.ts";
import { type NodeHandlerOptions, requireHandlerOptions } from "./handler-options.ts";
import { refuse } from "./refuse.ts";
import { send, sendAnswer } from "./send.ts";
import { type IncomingRequest, toRequest } from "./to-request.ts";

/**
 * Mounts a gateway, or any fetch handler, on `node:http`: `createServer(toNodeHandler(gateway))`. The handler never
 * throws and its promise never rejects: a failure before the headers is a 500, and a later one closes the connection.
 * @throws GatewayError `invalid_configuration` if `writeStall` isn't a positive integer
 */
export function toNodeHandler(
  gateway: FetchHandler | AnswerHandler,
  options: NodeHandlerOptions = {},
): (incoming: IncomingRequest, outgoing: ServerResponse) => Promise<void> {
  const { writeStall } = requireHandlerOptions(options);
  return async (incoming, outgoing) => {
    try {
      const request = toRequest(incoming, outgoing);
      if ("answer" in gateway)
        await sendAnswer(outgoing, await gateway.answer(request), writeStall);
      else await send(outgoing, await gateway.fetch(request.toWeb()), writeStall);
    } catch {
      if (outgoing.headersSent || outgoing.destroyed) outgoing.destroy();
      else refuse(outgoing, "internal_error");
    }
  };
}
