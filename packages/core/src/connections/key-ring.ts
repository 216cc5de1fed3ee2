import { createSecretKey, type KeyObject } from "node:crypto";
import type { SecretBox } from "../contracts/secret-box.ts";
import { type CipherParameters, decrypt, encrypt } from "../kernel/aes-gcm.ts";
import type { IdSource } from "../kernel/ids.ts";

/**
 * Key-encryption keys by name, each 32 bytes in base64: `openssl rand -base64 32` creates one. `current` names the key for
 * new wraps. The others only unwrap their own, until `connections.reseal` has replaced them.
 */
export interface SecretKeys {
  readonly current: string;
  readonly keys: Readonly<Record<string, string>>;
}

/** For gateways without sealed credentials: wraps and unwraps nothing. */
export const noKeys: SecretKeys = { current: "", keys: {} };

const keyBytes = 32;
/** Shorter than a key in base64: a key given in place of its name must not show up in an error. */
const namePattern = /^[A-Za-z0-9._-]{1,32}$/;

/** The problems of the keys, one sentence each. Never quotes a key. */
export function secretKeyProblems({ current, keys }: SecretKeys): readonly string[] {
  if (typeof keys !== "object" || keys === null) return ["secrets must be { current, keys }."];
  const names = Object.keys(keys);
  if (names.length === 0) return ["secrets.keys must name at least one key."];
  const values = new Set(Object.values(keys));
  return [
    ...(names.every((name) => namePattern.test(name))
      ? []
      : ["secrets.keys: names must be 1 to 32 letters, digits, dots, hyphens or underscores."]),
    ...names
      .filter((name) => namePattern.test(name) && keyOf(keys[name]) === null)
      .map((name) => `secrets.keys.${name} must be 32 bytes in base64.`),
    ...(values.size === names.length
      ? []
      : ["secrets.keys contains the same key under two names."]),
    ...(typeof current === "string" && Object.hasOwn(keys, current)
      ? []
      : ["secrets.current must name one of secrets.keys."]),
  ];
}

/** Creates a box from valid keys. The wrap's context contains the key's name. */
export function createKeyRing({ current, keys }: SecretKeys, ids: IdSource): SecretBox {
  const ring = new Map(Object.entries(keys).flatMap(([id, text]) => entryOf(id, text)));
  const lockOf = (keyId: string, context: Uint8Array): CipherParameters => {
    const key = ring.get(keyId);
    if (!key) throw new TypeError("unknown key-encryption key");
    return { key, context: wrapContext(keyId, context) };
  };
  return {
    contract: 1,
    current,
    wrap: (dataKey, context) => ({
      keyId: current,
      wrapped: encrypt(dataKey, lockOf(current, context), (length) => ids.bytes(length)),
    }),
    unwrap: ({ keyId, wrapped }, context) => decrypt(wrapped, lockOf(keyId, context)),
  };
}

function wrapContext(keyId: string, context: Uint8Array): Buffer {
  const place = Buffer.from(context).toString("base64");
  return Buffer.from(JSON.stringify(["tollgate.data-key", 1, keyId, place]));
}

function entryOf(id: string, text: string): readonly (readonly [string, KeyObject])[] {
  const key = keyOf(text);
  return key === null ? [] : [[id, createSecretKey(key)]];
}

/** Strict, because Node skips or truncates invalid base64, which hides a mistake in a key. */
function keyOf(text: unknown): Buffer | null {
  if (typeof text !== "string") return null;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === keyBytes && bytes.toString("base64") === text ? bytes : null;
}
