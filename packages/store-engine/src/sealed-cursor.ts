import { createCipheriv, createDecipheriv, hash } from "node:crypto";
import { type CursorPlace, decodeCursor, encodeCursor, foreignCursor } from "@tollgate/core/store";

const blockBytes = 16;

/** The store's secret, which no reader has, and the organization of the list. */
export interface CursorSeal {
  readonly secret: string;
  readonly organizationId: string;
}

/**
 * Encrypts the place in a cursor of an organization's list. Places hold a number that counts the writes of all
 * organizations, and the organization would learn how much the others do.
 */
export function sealCursor(list: string, cursor: string, seal: CursorSeal): string {
  const { order, tie } = decodeCursor(list, cursor);
  const block = Buffer.alloc(blockBytes);
  block.writeBigInt64BE(BigInt(order));
  // Lists without a tie have an empty one.
  block.writeBigInt64BE(tie === "" ? -1n : BigInt(tie), 8);
  const cipher = createCipheriv("aes-256-ecb", keyOf(seal), null).setAutoPadding(false);
  return encodeCursor(list, { order: 0, tie: cipher.update(block).toString("base64url") });
}

/**
 * Decrypts a cursor that `sealCursor` made for the same organization and list.
 * @throws GatewayError `invalid_argument` for any other
 */
export function openCursor(list: string, cursor: string, seal: CursorSeal): string {
  const plain = decrypted(decodeCursor(list, cursor), seal);
  // The block has no checksum, but a forged one almost always has numbers that are too large for a place.
  const opened = plain && encodeCursor(list, plain);
  if (opened !== null && sealCursor(list, opened, seal) === cursor) return opened;
  throw foreignCursor();
}

function decrypted({ tie: text }: CursorPlace, seal: CursorSeal): CursorPlace | null {
  const block = Buffer.from(text, "base64url");
  if (block.length !== blockBytes) return null;
  const decipher = createDecipheriv("aes-256-ecb", keyOf(seal), null).setAutoPadding(false);
  const plain = decipher.update(block);
  const [order, tie] = [Number(plain.readBigInt64BE()), Number(plain.readBigInt64BE(8))];
  if (!Number.isSafeInteger(order) || !Number.isSafeInteger(tie) || tie < -1) return null;
  return { order, tie: tie === -1 ? "" : String(tie) };
}

function keyOf({ secret, organizationId }: CursorSeal): Buffer {
  return hash("sha256", `${secret}\0${organizationId}`, "buffer");
}
