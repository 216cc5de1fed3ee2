import { crc32 } from "node:zlib";
import { sha256 } from "../kernel/digest.ts";
import type { IdSource } from "../kernel/ids.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** How secrets begin: those of API keys, and those of tokens for the admin API. */
type Prefix = "tg_" | "tga_";
const randomLength = 43;
const checksumLength = 6;
const form = /^[0-9A-Za-z]{49}$/;

/** A new secret: its prefix, 32 random bytes in base62, and a CRC-32 of them, which detects typos without a look-up. */
export function createSecret(ids: IdSource, prefix: Prefix = "tg_"): string {
  const random = base62(BigInt(`0x${Buffer.from(ids.bytes(32)).toString("hex")}`), randomLength);
  return prefix + random + checksum(random);
}

/** Whether a text has the form of a secret with this prefix. */
export function isSecretForm(text: string, prefix: Prefix = "tg_"): boolean {
  const rest = text.slice(prefix.length);
  if (!text.startsWith(prefix) || !form.test(rest)) return false;
  return checksum(rest.slice(0, randomLength)) === rest.slice(randomLength);
}

/** The only form in which a secret is stored. */
export function secretDigest(secret: string): Buffer {
  return sha256(secret);
}

/** Tells secrets apart without revealing them: the prefix and four characters. */
export function displayPrefix(secret: string): string {
  return secret.slice(0, secret.indexOf("_") + 5);
}

function checksum(random: string): string {
  return base62(BigInt(crc32(random)), checksumLength);
}

function base62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; rest > 0n; rest /= 62n) text = `${alphabet[Number(rest % 62n)]}${text}`;
  return text.padStart(length, "0");
}
