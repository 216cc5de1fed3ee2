import type { GatewayEvent } from "../contracts/observer.ts";
import type { SecretBox, WrappedKey } from "../contracts/secret-box.ts";
import type { GatewayConnection, SealedConnection } from "../domain/gateway-connection.ts";
import { decrypt, encrypt } from "../kernel/aes-gcm.ts";
import { orTimeout } from "../kernel/bounded-wait.ts";
import type { Clock } from "../kernel/clock.ts";
import type { IdSource } from "../kernel/ids.ts";

/** The place a credential belongs to. It can't be decrypted for any other. */
export type CredentialPlace = Pick<GatewayConnection, "id" | "organizationId" | "gateway">;

/** Encrypts credentials, each with its own data key that the box wraps, and decrypts them. */
export interface CredentialSealer {
  /** The key-encryption key for new wraps; empty for none. */
  readonly current: string;
  /** @throws UnsealError */
  seal(
    place: CredentialPlace,
    credential: string,
  ): Promise<Pick<SealedConnection, "credential" | "wrappedKey" | "keyId">>;
  /** Unwraps the data key of a connection. Observers are notified if that fails. @throws UnsealError */
  unwrap(connection: SealedConnection): Promise<Uint8Array>;
  /** Decrypts the credential. Observers are notified if it was tampered with. @throws UnsealError */
  open(connection: SealedConnection, dataKey: Uint8Array): string;
  /** Wraps the same data key with the current key-encryption key. @throws UnsealError */
  rewrap(connection: SealedConnection): Promise<Pick<SealedConnection, "wrappedKey" | "keyId">>;
}

/**
 * A credential could not be decrypted. Carries no cause: a key service's message about a data key must not be shown.
 */
export class UnsealError extends Error {
  override readonly name = "Unsealable";
  readonly reason: "key_unavailable" | "credential_damaged";

  constructor(reason: UnsealError["reason"]) {
    super(reason);
    this.reason = reason;
  }
}

/** The version of the format: the first byte, and part of the encryption context. */
const format = 1;
const dataKeyBytes = 32;
const maxCallMs = 5_000;

interface SealerParts {
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly notify: (event: GatewayEvent) => void;
}

export function createCredentialSealer({ box, clock, ids, notify }: SealerParts): CredentialSealer {
  const random = (length: number): Uint8Array => ids.bytes(length);

  async function ask<Answer>(call: () => Answer | Promise<Answer>): Promise<Answer> {
    try {
      return await orTimeout(clock, maxCallMs, call);
    } catch {
      throw new UnsealError("key_unavailable");
    }
  }

  async function wrap(place: CredentialPlace, dataKey: Uint8Array) {
    const key = await ask(async () => requireWrap(await box.wrap(dataKey, contextOf(place))));
    return { keyId: key.keyId, wrappedKey: key.wrapped };
  }

  function unavailable(connection: GatewayConnection, reason: UnsealError["reason"]): UnsealError {
    const { organizationId, gateway, id: connectionId, keyId } = connection;
    const at = clock.now();
    notify({
      type: "connection.unavailable",
      at,
      organizationId,
      gateway,
      connectionId,
      keyId,
      reason,
    });
    return new UnsealError(reason);
  }

  async function unwrap(connection: SealedConnection): Promise<Uint8Array> {
    const key = { keyId: connection.keyId, wrapped: connection.wrappedKey };
    const dataKey = await ask(() => box.unwrap(key, contextOf(connection))).catch(() => null);
    if (dataKey instanceof Uint8Array && dataKey.length === dataKeyBytes) return dataKey;
    throw unavailable(connection, "key_unavailable");
  }

  return {
    get current() {
      return box.current;
    },
    async seal(place, credential) {
      const dataKey = random(dataKeyBytes);
      const lock = { key: dataKey, context: contextOf(place) };
      const sealed = encrypt(Buffer.from(credential), lock, random);
      return {
        credential: Buffer.concat([Uint8Array.of(format), sealed]),
        ...(await wrap(place, dataKey)),
      };
    },
    unwrap,
    open(connection, dataKey) {
      const { credential } = connection;
      try {
        if (credential[0] !== format)
          throw new TypeError("the credential was sealed by a release with another format");
        const lock = { key: dataKey, context: contextOf(connection) };
        return decrypt(credential.subarray(1), lock).toString();
      } catch {
        throw unavailable(connection, "credential_damaged");
      }
    },
    rewrap: async (connection) => wrap(connection, await unwrap(connection)),
  };
}

/** A unique text for each place: JSON keeps its parts apart. */
function contextOf({ organizationId, id, gateway }: CredentialPlace): Buffer {
  return Buffer.from(JSON.stringify(["tollgate.credential", format, organizationId, id, gateway]));
}

/** The host's own box may return anything. An unusable wrap must not replace a good one. */
function requireWrap(key: WrappedKey): WrappedKey {
  const { keyId, wrapped } = key;
  if (typeof keyId !== "string" || !/^[^\p{Cc}]{1,255}$/u.test(keyId))
    throw new TypeError("`wrap` returned no key id");
  if (!(wrapped instanceof Uint8Array) || wrapped.length === 0)
    throw new TypeError("`wrap` returned no bytes");
  return key;
}
