import { GatewayError } from "../errors/gateway-error.ts";

/** A place in a list as an opaque string: the list's name, so that no cursor fits another list, and the last row's keys. */
export function encodeCursor(list: string, keys: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([list, ...keys])).toString("base64url");
}

/**
 * The keys a cursor of this list was made of, of the types of `shape`.
 * @throws GatewayError `invalid_argument` for a cursor that this list did not give.
 */
export function decodeCursor<const Shape extends readonly ("string" | "number")[]>(
  list: string,
  shape: Shape,
  cursor: string,
): { -readonly [At in keyof Shape]: Shape[At] extends "number" ? number : string } {
  const [name, ...keys] = parsed(cursor);
  const fits =
    name === list &&
    keys.length === shape.length &&
    keys.every((key, at) => typeof key === shape[at]) &&
    encodeCursor(list, keys as (string | number)[]) === cursor;
  if (!fits)
    throw new GatewayError("invalid_argument", "cursor is not one that this list gave.", {
      param: "cursor",
    });
  return keys as { -readonly [At in keyof Shape]: Shape[At] extends "number" ? number : string };
}

function parsed(cursor: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
