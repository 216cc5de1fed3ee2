import type { Json } from "@tollgate/core/provider";

export type JsonObject = { readonly [key: string]: Json };

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the members of an object, and no members for any other value. */
export function membersOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : noMembers;
}

export function itemsOf(value: Json | undefined): readonly Json[] {
  return isList(value) ? value : [];
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** Returns a non-empty text, and null for any other value. */
export function textOf(value: Json | undefined): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

const noMembers: JsonObject = {};
