import { getRandomValues } from "node:crypto";
import { v7 } from "uuid";

/** Where identifiers and random bytes come from. */
export interface IdSource {
  /** A new UUID in lower case. The default gives version 7. */
  uuid(): string;
  /** Unpredictable bytes, for secrets and salts. */
  bytes(length: number): Uint8Array;
}

const poolSize = 8_192;

/** UUID version 7 and the system's random bytes, drawn from it a pool at a time: no byte is ever given twice. */
export function createRandomIds(): IdSource {
  let pool = new Uint8Array(0);
  let used = 0;

  function bytes(length: number): Uint8Array {
    if (length > poolSize) return getRandomValues(new Uint8Array(length));
    if (used + length > pool.length) {
      pool = getRandomValues(new Uint8Array(poolSize));
      used = 0;
    }
    const taken = pool.slice(used, used + length);
    // What was given away does not stay behind.
    pool.fill(0, used, used + length);
    used += length;
    return taken;
  }

  return { uuid: () => v7({ random: bytes(16) }), bytes };
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return uuid.test(text);
}
