import type { Store } from "../contracts/store.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { orUnavailable } from "./durable.ts";
import type { GovernedCall } from "./governed-call.ts";

/** Named ids must be the caller's before anything is decided; opening the Step checks again. */
export async function requireOwned(
  store: Store,
  { caller, sessionId, turnId }: GovernedCall,
): Promise<void> {
  if (sessionId !== null && !(await orUnavailable(store.sessions.isOwned(caller, sessionId))))
    throw notOwned("session_not_found");
  if (turnId !== null && (await orUnavailable(store.sessions.findByTurn(caller, turnId))) === null)
    throw notOwned("turn_not_found");
}

/** The same answer whether the id exists elsewhere or not. */
export function notOwned(code: "session_not_found" | "turn_not_found"): GatewayError {
  return code === "session_not_found"
    ? new GatewayError(code, "Session not found.", { param: "session_id" })
    : new GatewayError(code, "Turn not found.", { param: "turn_id" });
}
