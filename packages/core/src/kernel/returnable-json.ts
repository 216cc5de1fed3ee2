import { forbiddenKeys } from "./json-guard.ts";
import type { Json } from "./stable-json.ts";

/** Whether a value nests objects and arrays at most this deep. Looks no deeper. */
export function isShallow(value: Json, depth: number): boolean {
  if (value === null || typeof value !== "object") return true;
  return depth > 0 && membersOf(value).every((member) => isShallow(member ?? null, depth - 1));
}

/** Whether a value contains more than this many values, counting itself. The value must be shallow. */
export function hasMoreValues(value: Json, max: number): boolean {
  let left = max;
  const take = (at: Json): boolean => {
    if (--left < 0) return false;
    return (
      at === null || typeof at !== "object" || membersOf(at).every((member) => take(member ?? null))
    );
  };
  return !take(value);
}

/** The approximate bytes of a value as JSON: escapes aren't counted. The value must be shallow. */
export function jsonBytes(value: Json): number {
  if (typeof value === "string") return Buffer.byteLength(value) + 3;
  if (typeof value === "number") return 8;
  if (value === null || typeof value !== "object") return 5;
  let bytes = 3;
  if (!isList(value)) for (const key of Object.keys(value)) bytes += key.length + 3;
  for (const member of membersOf(value)) bytes += jsonBytes(member ?? null);
  return bytes;
}

/**
 * The value in a form that a client may send back; the same object if it needs no change. Halves of surrogate pairs become
 * U+FFFD, and numbers that lost digits become null. Members with forbidden names are dropped, and so are those beyond
 * `keys` in one object. The value must be shallow.
 */
export function returnableJson(value: Json, keys: number): Json {
  if (isReturnable(value, keys)) return value;
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "number") return null;
  if (isList(value)) return value.map((entry) => returnableJson(entry, keys));
  return Object.fromEntries(
    Object.entries(value ?? {})
      .filter(([key]) => !forbiddenKeys.has(key))
      .slice(0, keys)
      .map(([key, member]) => [key.toWellFormed(), returnableJson(member ?? null, keys)]),
  );
}

function isReturnable(value: Json, keys: number): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return isKept(value);
  if (value === null || typeof value !== "object") return true;
  if (!isList(value)) {
    const names = Object.keys(value);
    const isFine = (key: string): boolean => key.isWellFormed() && !forbiddenKeys.has(key);
    if (names.length > keys || !names.every(isFine)) return false;
  }
  return membersOf(value).every((member) => isReturnable(member ?? null, keys));
}

/** From here on JSON writes numbers with an exponent, which doesn't suggest exact digits. */
const minWithExponent = 1e21;

function isKept(value: number): boolean {
  if (!Number.isInteger(value)) return Number.isFinite(value);
  return Number.isSafeInteger(value) || Math.abs(value) >= minWithExponent;
}

function membersOf(value: Exclude<Json, null | boolean | number | string>) {
  return isList(value) ? value : Object.values(value);
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
