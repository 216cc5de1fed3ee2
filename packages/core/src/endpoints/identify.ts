import type { Authenticate } from "../contracts/authenticate.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { bearerToken } from "../http/headers.ts";
import { askHost } from "../identity/ask-host.ts";
import type { Credential } from "../identity/authenticate.ts";
import type { GatewayContext } from "../pipeline/context.ts";

/** Reads off a request who it says it is from. */
export type Identify = (request: GatewayRequest) => Credential | Promise<Credential>;

/** By its API key, after the host was asked where there is one to ask. */
export function createIdentify(
  context: GatewayContext,
  authenticate: Authenticate | undefined,
): Identify {
  if (authenticate === undefined) return byApiKey;
  return async (request) => {
    const named = await askHost(
      authenticate,
      "toHead" in request ? request.toHead() : request,
      context,
    );
    return named === null ? byApiKey(request) : { named };
  };
}

function byApiKey(request: GatewayRequest): Credential {
  return { token: bearerToken(request.headers) };
}
