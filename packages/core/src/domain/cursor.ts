import { type GatewayError, invalidArgument } from "../errors/gateway-error.ts";

/** How many rows a page scans before it ends, unless its reader asks for fewer. */
export const defaultMaxScanned = 20_000;

/** Where a page ended: the number its list is sorted by, and a key that tells rows with the same number apart. */
export interface CursorPlace {
  readonly order: number;
  readonly tie: string;
}

/** Encodes a place as an opaque string that includes the list's name, so it works with no other list. */
export function encodeCursor(list: string, place: CursorPlace): string {
  return Buffer.from(JSON.stringify([list, place.order, place.tie])).toString("base64url");
}

/**
 * The place that a cursor of this list refers to.
 * @throws GatewayError `invalid_argument` for a cursor of another list
 */
export function decodeCursor(list: string, cursor: string): CursorPlace {
  const [name, order, tie] = parsed(cursor);
  if (name === list && typeof order === "number" && typeof tie === "string") {
    const place = { order, tie };
    if (Number.isSafeInteger(order) && encodeCursor(list, place) === cursor) return place;
  }
  throw foreignCursor();
}

/**
 * The tie of a cursor as a number, for lists whose ties are whole numbers.
 * @throws GatewayError `invalid_argument` for any other tie
 */
export function tieNumber({ tie }: CursorPlace): number {
  const number = Number(tie);
  if (Number.isSafeInteger(number) && String(number) === tie) return number;
  throw foreignCursor();
}

/** The error for a cursor that its list did not give. */
export function foreignCursor(): GatewayError {
  return invalidArgument("cursor", "`cursor` must be the `nextCursor` of this list.");
}

function parsed(cursor: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
