import type { Json } from "@tollgate/core/provider";

export type JsonObject = { readonly [key: string]: Json };

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The members of an object; none for anything else. */
export function membersOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : noMembers;
}

export function itemsOf(value: Json | undefined): readonly Json[] {
  return isList(value) ? value : [];
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** A text that is there and not empty; null for anything else. */
export function textOf(value: Json | undefined): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

const noMembers: JsonObject = {};
