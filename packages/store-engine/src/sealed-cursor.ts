import { createCipheriv, createDecipheriv, hash } from "node:crypto";
import { type CursorPlace, decodeCursor, encodeCursor, foreignCursor } from "@tollgate/core/store";

const blockBytes = 16;

/**
 * Encrypts the place in a cursor of an organization's list with the organization's salt, which no reader has. Places hold a
 * number that counts the writes of all organizations, and the organization would learn how much the others do. Without a
 * salt, the organization never had a key, and the cursor stays as it is.
 */
export function sealCursor(list: string, cursor: string, salt: Uint8Array | null): string {
  if (salt === null) return cursor;
  const { order, tie } = decodeCursor(list, cursor);
  const block = Buffer.alloc(blockBytes);
  block.writeBigInt64BE(BigInt(order));
  // Lists without a tie have an empty one.
  block.writeBigInt64BE(tie === "" ? -1n : BigInt(tie), 8);
  const cipher = createCipheriv("aes-256-ecb", keyOf(salt), null).setAutoPadding(false);
  return encodeCursor(list, { order: 0, tie: cipher.update(block).toString("base64url") });
}

/**
 * Decrypts a cursor that `sealCursor` made for the same organization and list.
 * @throws GatewayError `invalid_argument` for any other
 */
export function openCursor(list: string, cursor: string, salt: Uint8Array | null): string {
  const sealed = decodeCursor(list, cursor);
  if (salt === null) return cursor;
  const plain = decrypted(sealed, salt);
  // The block has no checksum, but a forged one almost always has numbers that are too large for a place.
  const opened = plain && encodeCursor(list, plain);
  if (opened !== null && sealCursor(list, opened, salt) === cursor) return opened;
  throw foreignCursor();
}

function decrypted({ tie: text }: CursorPlace, salt: Uint8Array): CursorPlace | null {
  const block = Buffer.from(text, "base64url");
  if (block.length !== blockBytes) return null;
  const decipher = createDecipheriv("aes-256-ecb", keyOf(salt), null).setAutoPadding(false);
  const plain = decipher.update(block);
  const [order, tie] = [Number(plain.readBigInt64BE()), Number(plain.readBigInt64BE(8))];
  if (!Number.isSafeInteger(order) || !Number.isSafeInteger(tie) || tie < -1) return null;
  return { order, tie: tie === -1 ? "" : String(tie) };
}

/** The salt has other uses, so the key is derived from it. */
function keyOf(salt: Uint8Array): Buffer {
  return hash("sha256", Buffer.concat([Buffer.from("cursor\0"), salt]), "buffer");
}
