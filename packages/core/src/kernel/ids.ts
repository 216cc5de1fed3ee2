import { getRandomValues } from "node:crypto";

/** The source of identifiers and random bytes. */
export interface IdSource {
  /** A new UUID in lower case. The default is version 7. */
  uuid(): string;
  /** Unpredictable bytes, for secrets and salts. */
  bytes(length: number): Uint8Array;
}

const poolSize = 8_192;

/** UUIDs of version 7, and random bytes of the system. Both come from a pool, and no byte is used twice. */
export function createRandomIds(): IdSource {
  let pool = new Uint8Array(0);
  let used = 0;
  const text = Buffer.from("00000000-0000-7000-8000-000000000000", "latin1");
  let writtenAt = 0;

  function fill(length: number): void {
    if (used + length <= pool.length) return;
    pool = getRandomValues(new Uint8Array(poolSize));
    used = 0;
  }
  /** Clears each byte it returns. */
  function byte(): number {
    const value = pool[used] ?? 0;
    pool[used++] = 0;
    return value;
  }
  function writeTime(at: number): void {
    writtenAt = at;
    const hex = at.toString(16).padStart(12, "0");
    text.write(hex.slice(0, 8), 0, "latin1");
    text.write(hex.slice(8), 9, "latin1");
  }
  function writeByte(at: number): void {
    const value = byte();
    text[at] = hexDigit(value >> 4);
    text[at + 1] = hexDigit(value & 15);
  }
  return {
    uuid() {
      const now = Date.now();
      if (now !== writtenAt) writeTime(now);
      fill(10);
      // 12 random bits follow the version, and 62 the variant.
      text[15] = hexDigit(byte() & 15);
      writeByte(16);
      const variant = byte();
      text[19] = hexDigit(8 | (variant & 3));
      text[20] = hexDigit(variant >> 4);
      writeByte(21);
      for (let at = 24; at < text.length; at += 2) writeByte(at);
      return text.toString("latin1");
    },
    bytes(length) {
      if (length > poolSize) return getRandomValues(new Uint8Array(length));
      fill(length);
      const taken = pool.slice(used, used + length);
      pool.fill(0, used, used + length);
      used += length;
      return taken;
    },
  };
}

/** The character code of a hexadecimal digit from 0 to 15. */
function hexDigit(value: number): number {
  return value < 10 ? 48 + value : 87 + value;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return uuid.test(text);
}
