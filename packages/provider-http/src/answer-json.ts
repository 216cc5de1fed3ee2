import { isTierName, isTokenCount, type Json, parseWithDigits } from "@tollgate/core/provider";

/** An object of an upstream's JSON. */
export type JsonObject = { readonly [key: string]: Json };

/** Whether a value is an object, and neither a list nor null. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the members of an object, and no members for any other value. */
export function membersOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : noMembers;
}

/** Returns the entries of a list, and none for any other value. */
export function itemsOf(value: Json | undefined): readonly Json[] {
  return isList(value) ? value : [];
}

/** Whether a value is a list. */
export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** Returns a non-empty text, and null for any other value. */
export function textOf(value: Json | undefined): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

const noMembers: JsonObject = {};

const longNumber = /\d{16}|\d[eE]\+?\d{3}/;
// Keeping digits takes ten times as long, so a larger text could block the process.
const maxExactLength = 262_144;

/**
 * Parses a JSON text again, for tool arguments that are sent as values: a number that would lose digits becomes an object
 * that `JSON.stringify` writes as it was. Null if the text has no such number or is longer than 262,144 characters.
 */
export function exactJson(text: string): Json {
  if (text.length > maxExactLength || !longNumber.test(text)) return null;
  return parseWithDigits(text);
}

/** A count of tokens as an upstream reports it. Undefined if it is missing, invalid or absurd. */
export function tokenCount(value: Json | undefined): number | undefined {
  return isTokenCount(value) ? value : undefined;
}

/** The service tier that an upstream reports. Undefined if it is missing or not a name. */
export function tierIn(value: Json | undefined): string | undefined {
  return isTierName(value) ? value : undefined;
}

/** A label of an answer as a member of its event. No member if the label is missing or longer than 255 characters. */
export function labelOf(
  name: "providerRequestId" | "providerModel" | "systemFingerprint",
  value: Json | undefined,
): object {
  return typeof value === "string" && value !== "" && value.length <= 255 ? { [name]: value } : {};
}
