import type { FoundKey, FoundSecret, KeyRepository } from "../contracts/key-repository.ts";
import { keyIsLive } from "../domain/api-key.ts";
import type { Caller, Owner } from "../domain/caller.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../kernel/clock.ts";
import { callerOfHost, callerOfKey } from "./caller-of.ts";
import type { KeyCache } from "./key-cache.ts";
import type { NamedCaller } from "./named-caller.ts";
import { isSecretForm, secretDigest } from "./secret.ts";

/** Who a request says it is from: a bearer token, null where there is none, or a caller whom the host named. */
export type Credential = { readonly token: string | null } | { readonly named: NamedCaller };

export interface Authenticator {
  /**
   * The caller behind a credential, from a read at most 5 seconds old. Opening a Step reads the key again.
   * @throws GatewayError `missing_api_key`, or `invalid_api_key` for every key that does not work, whatever the cause.
   */
  authenticate(credential: Credential): Promise<Caller>;
  /** The same from a fresh read, for requests that open no Step. */
  authenticateFresh(credential: Credential): Promise<Caller>;
}

interface Parts {
  readonly keys: KeyRepository;
  readonly cache: KeyCache;
  readonly clock: Clock;
  readonly dataClasses: readonly string[];
  /** The key's record of a caller whom the host named, made where there is none. */
  readonly ensure: (named: NamedCaller) => Promise<FoundKey>;
  readonly used: (owner: Owner) => void;
}

export function createAuthenticator(parts: Parts): Authenticator {
  const { keys, cache, clock } = parts;

  async function find(
    name: string,
    isFresh: boolean,
    read: () => Promise<FoundSecret | null>,
  ): Promise<FoundSecret> {
    const known = isFresh ? null : cache.get(name);
    const found = known ?? (await read());
    if (!found || !isLive(found, clock.now())) {
      cache.drop(name);
      throw invalidApiKey();
    }
    if (!known) cache.set(name, found);
    return found;
  }

  async function ofToken(token: string | null, isFresh: boolean): Promise<Caller> {
    if (token === null) throw missing();
    if (!isSecretForm(token)) throw invalidApiKey();
    const digest = secretDigest(token);
    const read = () => keys.findByDigest(digest, clock.now());
    return callerOfKey(await find(digest.toString("hex"), isFresh, read));
  }

  async function ofHost(named: NamedCaller, isFresh: boolean): Promise<Caller> {
    const { organizationId, userId, label } = named;
    const name = JSON.stringify([organizationId, userId, label]);
    const read = async () => ({ ...(await parts.ensure(named)), secretEndsAt: null });
    return callerOfHost(await find(name, isFresh, read), named, parts.dataClasses);
  }

  async function authenticate(credential: Credential, isFresh: boolean): Promise<Caller> {
    const caller = await ("token" in credential
      ? ofToken(credential.token, isFresh)
      : ofHost(credential.named, isFresh));
    parts.used(caller);
    return caller;
  }

  return {
    authenticate: (credential) => authenticate(credential, false),
    authenticateFresh: (credential) => authenticate(credential, true),
  };
}

function isLive({ key, secretEndsAt }: FoundSecret, at: number): boolean {
  return keyIsLive(key, at) && (secretEndsAt === null || at < secretEndsAt);
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
