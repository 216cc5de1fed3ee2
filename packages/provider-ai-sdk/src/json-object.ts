import type { JSONObject } from "@ai-sdk/provider";

/** Whether JSON is an object: neither null nor a list. */
export function isObject(value: unknown): value is JSONObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the members of an object, and no members for any other value. */
export function membersOf(value: unknown): JSONObject {
  return isObject(value) ? value : {};
}
