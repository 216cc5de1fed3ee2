/** Any JSON value. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json | undefined };

/** JSON with object keys in code unit order and no spaces: equal values have equal bytes (RFC 8785). */
export function stableJson(value: Json): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (isList(value)) return `[${value.map(stableJson).join(",")}]`;
  const members = Object.keys(value)
    .sort()
    .flatMap((key) => {
      const member = value[key];
      return member === undefined ? [] : `${JSON.stringify(key)}:${stableJson(member)}`;
    });
  return `{${members.join(",")}}`;
}

/** Whether JSON is an object: neither null nor a list. */
export function isObject(value: unknown): value is { readonly [key: string]: Json | undefined } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether JSON is a list. */
export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}
