import type { Authenticate } from "../contracts/authenticate.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { bearerToken } from "../http/headers.ts";
import type { Credential } from "../identity/authenticate.ts";
import { type NamedCaller, readCaller } from "../identity/named-caller.ts";
import { orTimeout } from "../kernel/bounded-wait.ts";
import type { GatewayContext } from "../pipeline/context.ts";

/** Reads from a request which caller it claims to come from. */
export type Identify = (request: GatewayRequest) => Credential | Promise<Credential>;

/** Identifies requests by their API key. If the host app has an `authenticate`, that comes first. */
export function createIdentify(
  context: GatewayContext,
  authenticate: Authenticate | undefined,
): Identify {
  if (authenticate === undefined) return byApiKey;
  return async (request) => {
    const head = "toHead" in request ? request.toHead() : request;
    const named = await askHost(context, authenticate, head);
    return named === null ? byApiKey(request) : { named };
  };
}

/** Clients of the Messages API, which name its version, may send the key as `x-api-key`. */
function byApiKey({ headers }: GatewayRequest): Credential {
  const token = bearerToken(headers);
  return token === null && headers.get("authorization") === null
    ? { token: headers.get("anthropic-version") === null ? null : headers.get("x-api-key") }
    : { token };
}

/** How long the host app may take to identify a caller. */
const maxAuthenticationMs = 10_000;

/**
 * Asks the host app who sent a request; null if it doesn't know.
 * @throws GatewayError `unauthenticated` if the host throws that; `authentication_unavailable` if it throws anything else,
 * takes too long, or returns an invalid caller
 */
async function askHost(
  { clock, dataClasses }: GatewayContext,
  authenticate: Authenticate,
  request: Request,
): Promise<NamedCaller | null> {
  try {
    const caller = await orTimeout(clock, maxAuthenticationMs, () => authenticate(request));
    return caller == null ? null : readCaller(caller, dataClasses);
  } catch (cause) {
    if (cause instanceof GatewayError && cause.code === "unauthenticated") throw cause;
    throw new GatewayError(
      "authentication_unavailable",
      "The host application could not identify the caller.",
      { cause },
    );
  }
}
