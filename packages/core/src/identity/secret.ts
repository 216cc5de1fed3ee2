import { crc32 } from "node:zlib";
import { sha256 } from "../kernel/digest.ts";
import type { IdSource } from "../kernel/ids.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const prefix = "tg_";
const randomLength = 43;
const checksumLength = 6;
const form = /^tg_[0-9A-Za-z]{49}$/;

/** A new API key: `tg_`, 32 random bytes in base62, and a CRC-32 of them, which detects typos without a look-up. */
export function createSecret(ids: IdSource): string {
  const random = base62(BigInt(`0x${Buffer.from(ids.bytes(32)).toString("hex")}`), randomLength);
  return prefix + random + checksum(random);
}

/** Whether a text has the form of an API key. */
export function isSecretForm(text: string): boolean {
  if (!form.test(text)) return false;
  const random = text.slice(prefix.length, prefix.length + randomLength);
  return checksum(random) === text.slice(prefix.length + randomLength);
}

/** The only form in which a secret is stored. */
export function secretDigest(secret: string): Buffer {
  return sha256(secret);
}

/** Tells keys apart without revealing them: `tg_` and four characters. */
export function displayPrefix(secret: string): string {
  return secret.slice(0, prefix.length + 4);
}

function checksum(random: string): string {
  return base62(BigInt(crc32(random)), checksumLength);
}

function base62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; rest > 0n; rest /= 62n) text = `${alphabet[Number(rest % 62n)]}${text}`;
  return text.padStart(length, "0");
}
