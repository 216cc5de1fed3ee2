import type { Json } from "./stable-json.ts";

/** Whether a value nests at most so many objects and arrays. Looks no deeper than that. */
export function isShallow(value: Json, depth: number): boolean {
  if (value === null || typeof value !== "object") return true;
  return depth > 0 && membersOf(value).every((member) => isShallow(member ?? null, depth - 1));
}

/** About the bytes that a value takes as JSON: escapes are not counted. The value must be shallow. */
export function jsonBytes(value: Json): number {
  if (typeof value === "string") return Buffer.byteLength(value) + 3;
  if (typeof value === "number") return 8;
  if (value === null || typeof value !== "object") return 5;
  let bytes = 3;
  if (!isList(value)) for (const key of Object.keys(value)) bytes += key.length + 3;
  for (const member of membersOf(value)) bytes += jsonBytes(member ?? null);
  return bytes;
}

/** The value with U+FFFD for every half of a surrogate pair; itself where it has none. The value must be shallow. */
export function wellFormedJson(value: Json): Json {
  if (isWellFormed(value)) return value;
  if (typeof value === "string") return value.toWellFormed();
  if (isList(value)) return value.map(wellFormedJson);
  return Object.fromEntries(
    Object.entries(value ?? {}).map(([key, member]) => [
      key.toWellFormed(),
      wellFormedJson(member ?? null),
    ]),
  );
}

function isWellFormed(value: Json): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (value === null || typeof value !== "object") return true;
  if (!isList(value) && !Object.keys(value).every((key) => key.isWellFormed())) return false;
  return membersOf(value).every((member) => isWellFormed(member ?? null));
}

function membersOf(value: Exclude<Json, null | boolean | number | string>) {
  return isList(value) ? value : Object.values(value);
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
