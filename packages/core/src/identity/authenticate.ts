import type { KeyOfSecret, KeyRepository, KeyWithSalt } from "../contracts/key-repository.ts";
import { keyIsLive } from "../domain/api-key.ts";
import type { Caller, Owner } from "../domain/caller.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../kernel/clock.ts";
import { sha256Hex } from "../kernel/digest.ts";
import { callerOfHost } from "./caller-of.ts";
import type { KeyCache, KnownKey } from "./key-cache.ts";
import type { NamedCaller } from "./named-caller.ts";
import { isSecretForm, secretDigest } from "./secret.ts";

/** Who a request claims to come from: a bearer token, null without one, or a caller named by the host. */
export type Credential = { readonly token: string | null } | { readonly named: NamedCaller };

export interface Authenticator {
  /**
   * The caller behind a credential, from a read at most 5 seconds old. Opening a Step reads the key again. Throws or
   * rejects with a GatewayError: `missing_api_key`, or `invalid_api_key` for every key that does not work, whatever the
   * cause.
   */
  authenticate(credential: Credential): Caller | Promise<Caller>;
  /** The same from a fresh read, for requests that open no Step. */
  authenticateFresh(credential: Credential): Promise<Caller>;
}

interface Parts {
  readonly keys: KeyRepository;
  readonly cache: KeyCache;
  readonly clock: Clock;
  readonly dataClasses: readonly string[];
  /** Finds or creates the key record of a caller named by the host. */
  readonly ensure: (named: NamedCaller) => Promise<KeyWithSalt>;
  readonly used: (owner: Owner) => void;
}

export function createAuthenticator(parts: Parts): Authenticator {
  const { keys, cache, clock } = parts;

  /** The cached key; null if it is no longer cached. */
  function known(name: string): KnownKey | null {
    const key = cache.get(name);
    if (key === null || isLive(key.found, clock.now())) return key;
    cache.drop(name);
    throw invalidApiKey();
  }

  async function read(name: string, reading: Promise<KeyOfSecret | null>): Promise<KnownKey> {
    const found = await reading;
    if (found && isLive(found, clock.now())) return cache.set(name, found);
    cache.drop(name);
    throw invalidApiKey();
  }

  function ofToken(token: string | null, isFresh: boolean): Caller | Promise<Caller> {
    if (token === null) throw missing();
    const name = sha256Hex(token);
    const key = isFresh ? null : known(name);
    if (key) return noted(key.caller);
    if (!isSecretForm(token)) throw invalidApiKey();
    const reading = keys.findByDigest(secretDigest(token), clock.now());
    return read(name, reading).then(({ caller }) => noted(caller));
  }

  function ofHost(named: NamedCaller, isFresh: boolean): Caller | Promise<Caller> {
    const { organizationId, userId, label } = named;
    const name = JSON.stringify([organizationId, userId, label]);
    const key = isFresh ? null : known(name);
    const callerOn = (known: KnownKey): Caller => {
      const caller = known.named.get(named) ?? callerOfHost(known.caller, named, parts.dataClasses);
      known.named.set(named, caller);
      return noted(caller);
    };
    if (key) return callerOn(key);
    const reading = parts.ensure(named).then((found) => ({ ...found, secretEndsAt: null }));
    return read(name, reading).then(callerOn);
  }

  function noted(caller: Caller): Caller {
    parts.used(caller);
    return caller;
  }

  const authenticate = (credential: Credential, isFresh: boolean): Caller | Promise<Caller> =>
    "token" in credential ? ofToken(credential.token, isFresh) : ofHost(credential.named, isFresh);

  return {
    authenticate: (credential) => authenticate(credential, false),
    authenticateFresh: async (credential) => authenticate(credential, true),
  };
}

function isLive({ key, secretEndsAt }: KeyOfSecret, at: number): boolean {
  return keyIsLive(key, at) && (secretEndsAt === null || at < secretEndsAt);
}

function missing(): GatewayError {
  return new GatewayError(
    "missing_api_key",
    "Missing API key. Send it as `Authorization: Bearer <API_KEY>`.",
  );
}

/** The same error for unknown, malformed, revoked and expired keys. */
export function invalidApiKey(): GatewayError {
  return new GatewayError("invalid_api_key", "The API key is not valid.");
}
