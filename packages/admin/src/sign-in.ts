import { type Clock, type Gateway, GatewayError, type GatewayRequest } from "@tollgate/core";
import { bearerToken, orTimeout } from "@tollgate/core/administration";
import { type AdminGrant, readGrant } from "./grant.ts";

/**
 * Says who sent a request to the admin API; null if nobody is signed in. The request has no body. It may take 10 seconds.
 * Throw a GatewayError `admin_unauthenticated` to say why a sign-in failed; any other error is a 503.
 */
export type AuthenticateAdmin = (
  request: Request,
) => AdminGrant | null | Promise<AdminGrant | null>;

/**
 * Signs in with the gateway's own tokens for the admin API, sent as `Authorization: Bearer tga_…`: for a server without its
 * own users. The actor of each change is the token's label and id. Returns null for a request without such a token.
 * @throws GatewayError `admin_unauthenticated` for an unknown, expired or revoked token
 */
export function tokenSignIn({
  findAdminToken,
}: Pick<Gateway, "findAdminToken">): AuthenticateAdmin {
  return async ({ headers }) => {
    const secret = bearerToken(headers) ?? "";
    const token = await findAdminToken(secret);
    // Another bearer token may be one of the host's own sign-in.
    if (token === null && secret.startsWith("tga_"))
      throw unauthenticated(
        "This token is unknown, expired or revoked: create another with `tollgate admin-tokens create`.",
      );
    if (token === null) return null;
    const { id, label, organizations, role, transcripts } = token;
    const actor = `${label}/${id}`;
    return { actor, organizations, role, ...(transcripts === null ? {} : { transcripts }) };
  };
}

const maxAuthenticationMs = 10_000;

/**
 * Asks the host who sent a request.
 * @throws GatewayError `admin_unauthenticated`, or `authentication_unavailable` if the host throws anything else, takes too
 * long or returns an invalid grant
 */
export async function signIn(
  clock: Clock,
  authenticateAdmin: AuthenticateAdmin,
  request: GatewayRequest,
): Promise<AdminGrant> {
  const head = "toHead" in request ? request.toHead() : headOf(request);
  const grant = await askHost(clock, authenticateAdmin, head);
  if (grant !== null) return grant;
  throw unauthenticated("Sign in to the admin API first.");
}

function unauthenticated(message: string): GatewayError {
  return new GatewayError("admin_unauthenticated", message, {
    headers: { "www-authenticate": "Bearer" },
  });
}

/** The host must not read the body, which is the operation's. */
function headOf({ url, method, headers, signal }: Request): Request {
  return new Request(url, { method, headers, signal });
}

async function askHost(
  clock: Clock,
  authenticateAdmin: AuthenticateAdmin,
  request: Request,
): Promise<AdminGrant | null> {
  try {
    const grant = await orTimeout(clock, maxAuthenticationMs, () => authenticateAdmin(request));
    return grant == null ? null : readGrant(grant);
  } catch (cause) {
    if (cause instanceof GatewayError && cause.code === "admin_unauthenticated") throw cause;
    throw new GatewayError(
      "authentication_unavailable",
      "The host application could not identify the operator.",
      { cause },
    );
  }
}
