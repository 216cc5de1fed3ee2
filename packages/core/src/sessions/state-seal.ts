import { isOpaqueField, isOpaqueMember, type StateFields } from "../domain/provider-state.ts";
import { hmacKey, hmacSha256, sameDigest } from "../kernel/digest.ts";
import { isList, type Json } from "../kernel/stable-json.ts";

/**
 * Seals state that only a provider can read before it is sent to the client, and opens it when it comes back. A client can
 * therefore return it only with the same key, and only to the provider it came from.
 */
export interface StateSeal {
  /** `tg1:<mac>:<origin>:<original>`; the origin is `<gateway>/<vendor>`. */
  seal(origin: string, original: string): string;
  /** Null if the text was not sealed for this key, or has been changed. */
  open(text: string): UnsealedText | null;
}

/** The content of a seal. */
export interface UnsealedText {
  readonly origin: string;
  readonly original: string;
}

/** Whether a text looks sealed. Only then is it worth opening. */
export const isSealed = (text: string): boolean => text.startsWith("tg1:");

const macBytes = 16;
const form = /^tg1:([A-Za-z0-9_-]{22}):([^:]{1,1024}):/;

/** The organization's salt binds a seal to the organization; the signed text binds it to the user and the key. */
export function createStateSeal(owner: {
  readonly userId: string;
  readonly keyId: string;
  readonly salt: Uint8Array;
}): StateSeal {
  const { userId, keyId, salt } = owner;
  let key: ReturnType<typeof hmacKey> | null = null;
  const macOf = (origin: string, original: string): Buffer => {
    // Most calls have no state.
    key ??= hmacKey(salt);
    return hmacSha256(
      key,
      JSON.stringify(["provider state", userId, keyId, origin]),
      original,
    ).subarray(0, macBytes);
  };
  return {
    seal: (origin, original) =>
      `tg1:${macOf(origin, original).toString("base64url")}:${encodeURIComponent(origin)}:${original}`,
    open(text) {
      const [head, mac, encoded] = form.exec(text) ?? [];
      if (head === undefined || mac === undefined || encoded === undefined) return null;
      const origin = decoded(encoded);
      const original = text.slice(head.length);
      if (origin === null) return null;
      const isOurs = sameDigest(macOf(origin, original), Buffer.from(mac, "base64url"));
      return isOurs ? { origin, original } : null;
    },
  };
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Replaces every text that only the provider can read. If `replace` returns null, the whole value becomes undefined. */
export function mapOpaque(
  name: string,
  value: Json,
  replace: (text: string) => string | null,
): Json | undefined {
  const walk = (key: string, at: Json, isOpaque: boolean): Json | undefined => {
    if (typeof at === "string")
      return at !== "" && (isOpaque || isOpaqueMember(key)) ? (replace(at) ?? undefined) : at;
    if (typeof at !== "object" || at === null) return at;
    if (isList(at)) {
      const list: Json[] = [];
      for (const entry of at) {
        const walked = walk(key, entry, isOpaque);
        if (walked === undefined) return undefined;
        list.push(walked);
      }
      return list;
    }
    const members: Record<string, Json> = {};
    for (const [member, given] of Object.entries(at)) {
      if (given === undefined) continue;
      const walked = walk(member, given, isOpaque || isOpaqueField(member));
      if (walked === undefined) return undefined;
      members[member] = walked;
    }
    return members;
  };
  return walk(name, value, isOpaqueField(name));
}

/** Fields as the client may see them, with texts that only the provider can read sealed. */
export function sealFields(seal: StateSeal, origin: string, fields: StateFields): StateFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      mapOpaque(name, value, (text) => seal.seal(origin, text)) ?? null,
    ]),
  );
}
