import type { GatewayEvent } from "../contracts/observer.ts";
import type { SecretBox, WrappedKey } from "../contracts/secret-box.ts";
import type { GatewayConnection, SealedConnection } from "../domain/gateway-connection.ts";
import { decrypt, encrypt } from "../kernel/aes-gcm.ts";
import { orTimeout } from "../kernel/bounded-wait.ts";
import type { Clock } from "../kernel/clock.ts";
import type { IdSource } from "../kernel/ids.ts";

/** Where a credential belongs: sealed for one place, it opens at no other. */
export type CredentialPlace = Pick<GatewayConnection, "id" | "organizationId" | "gateway">;

/** Seals credentials, each under a data key of its own that the box wraps, and opens them. */
export interface CredentialSealer {
  /** The key-encryption key that wraps from now on; empty where there is none. */
  readonly current: string;
  /** @throws Unsealable */
  seal(
    place: CredentialPlace,
    credential: string,
  ): Promise<Pick<SealedConnection, "credential" | "wrappedKey" | "keyId">>;
  /** The data key of a connection. The observers hear of it where it cannot be had. @throws Unsealable */
  unwrap(connection: SealedConnection): Promise<Uint8Array>;
  /** The credential. The observers hear of one that was tampered with. @throws Unsealable */
  open(connection: SealedConnection, dataKey: Uint8Array): string;
  /** The same data key, wrapped by the current key-encryption key. @throws Unsealable */
  rewrap(connection: SealedConnection): Promise<Pick<SealedConnection, "wrappedKey" | "keyId">>;
}

/** A credential that stays closed. It carries no cause: what a key service says of a data key is not ours to show. */
export class UnsealError extends Error {
  override readonly name = "Unsealable";
  readonly reason: "key_unavailable" | "credential_damaged";

  constructor(reason: UnsealError["reason"]) {
    super(reason);
    this.reason = reason;
  }
}

/** The form of what is sealed: its first byte, and part of what it is bound to. */
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
        if (credential[0] !== format) throw new TypeError("a format of another release");
        const lock = { key: dataKey, context: contextOf(connection) };
        return decrypt(credential.subarray(1), lock).toString();
      } catch {
        throw unavailable(connection, "credential_damaged");
      }
    },
    rewrap: async (connection) => wrap(connection, await unwrap(connection)),
  };
}

/** One text for one place: JSON keeps its parts apart. */
function contextOf({ organizationId, id, gateway }: CredentialPlace): Buffer {
  return Buffer.from(JSON.stringify(["tollgate.credential", format, organizationId, id, gateway]));
}

/** A box of the host's own can answer anything; what cannot be kept must not replace what is. */
function requireWrap(key: WrappedKey): WrappedKey {
  const { keyId, wrapped } = key;
  if (typeof keyId !== "string" || !/^[^\p{Cc}]{1,255}$/u.test(keyId))
    throw new TypeError("a wrap without the id of its key");
  if (!(wrapped instanceof Uint8Array) || wrapped.length === 0)
    throw new TypeError("a wrap without bytes");
  return key;
}
