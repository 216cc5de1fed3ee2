import type { KeyRepository } from "../contracts/repositories.ts";
import { keyIsLive } from "../domain/api-key.ts";
import type { Caller, Owner } from "../domain/caller.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../kernel/clock.ts";
import type { KeyCache, KnownKey } from "./key-cache.ts";
import { isSecretForm, secretDigest } from "./secret.ts";

export interface Authenticator {
  /**
   * The caller behind a bearer token, from a read at most 5 seconds old. Opening a Step reads the key again.
   * @throws GatewayError `missing_api_key`, or `invalid_api_key` for every key that does not work, whatever the cause.
   */
  authenticate(token: string | null): Promise<Caller>;
  /** The same from a fresh read, for requests that open no Step. */
  authenticateFresh(token: string | null): Promise<Caller>;
}

export function createAuthenticator(
  keys: KeyRepository,
  cache: KeyCache,
  clock: Clock,
  used: (owner: Owner) => void = () => {},
): Authenticator {
  async function read(digest: Buffer, digestHex: string): Promise<KnownKey | null> {
    const known = await keys.findByDigest(digest, clock.now());
    if (known) cache.set(digestHex, known);
    else cache.drop(digestHex);
    return known;
  }

  async function authenticate(token: string | null, fresh: boolean): Promise<Caller> {
    if (token === null) throw missing();
    if (!isSecretForm(token)) throw invalidApiKey();
    const digest = secretDigest(token);
    const digestHex = digest.toString("hex");
    const known = (fresh ? null : cache.get(digestHex)) ?? (await read(digest, digestHex));
    if (!known || !keyIsLive(known.key, clock.now())) throw invalidApiKey();
    const caller = callerOf(known);
    used(caller);
    return caller;
  }

  return {
    authenticate: (token) => authenticate(token, false),
    authenticateFresh: (token) => authenticate(token, true),
  };
}

function callerOf({ key, salt }: KnownKey): Caller {
  return {
    organizationId: key.organizationId,
    userId: key.userId,
    keyId: key.id,
    keyLabel: key.label,
    source: "api",
    defaultDataClass: key.defaultDataClass,
    minimumDataClass: key.minimumDataClass,
    models: key.models,
    salt,
  };
}

function missing(): GatewayError {
  return new GatewayError(
    "missing_api_key",
    "No API key was given. Send it as `Authorization: Bearer <API_KEY>`.",
  );
}

/** One answer for a key that is unknown, malformed, revoked or expired. */
export function invalidApiKey(): GatewayError {
  return new GatewayError("invalid_api_key", "The API key is not valid.");
}
