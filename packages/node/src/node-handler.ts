import type { ServerResponse } from "node:http";
import type { AnswerHandler, FetchHandler } from "./handler.ts";
import { refuse } from "./refuse.ts";
import { send, sendAnswer } from "./send.ts";
import { defaultServerLimits } from "./server-limits.ts";
import { type IncomingRequest, toRequest } from "./to-request.ts";

/** Bounds of the bridge itself; a gateway's own limits are configured on the gateway. */
export interface NodeHandlerOptions {
  /** How long a client may leave an answer unread, in milliseconds; it is cut off then. Default 30,000. */
  readonly writeStall?: number;
}

/**
 * Mounts a gateway, or any fetch handler, on `node:http`: `createServer(toNodeHandler(gateway))`. The handler never
 * throws and its promise never rejects: a failure before the headers is a 500, one in the middle cuts the connection.
 */
export function toNodeHandler(
  gateway: FetchHandler | AnswerHandler,
  options: NodeHandlerOptions = {},
): (incoming: IncomingRequest, outgoing: ServerResponse) => Promise<void> {
  const writeStall = options.writeStall ?? defaultServerLimits.writeStall;
  const respond =
    "answer" in gateway
      ? async (request: Request, outgoing: ServerResponse) =>
          sendAnswer(outgoing, await gateway.answer(request), writeStall)
      : async (request: Request, outgoing: ServerResponse) =>
          send(outgoing, await gateway.fetch(request), writeStall);

  return async (incoming, outgoing) => {
    try {
      await respond(toRequest(incoming, outgoing), outgoing);
    } catch {
      if (outgoing.headersSent || outgoing.destroyed) outgoing.destroy();
      else refuse(outgoing, "internal_error");
    }
  };
}
