/** A copy of input, and where it has keys that no data has. */
export interface PlainCopy {
  readonly value: unknown;
  /** Paths of members named `__proto__`, which reading would drop in silence. */
  readonly forbidden: readonly (readonly PropertyKey[])[];
  /** Paths of members that are undefined. */
  readonly missing: readonly (readonly PropertyKey[])[];
}

const maxDepth = 32;

/**
 * Copies plain objects and lists, without members that are undefined; anything else, such as a function or an instance
 * of a class, stays itself, and so do the members `passThrough` of the input. Deeper than 32 levels, input is not data that any schema reads, and stays itself as well.
 */
export function plainCopy(input: unknown, passThrough: readonly string[] = []): PlainCopy {
  const forbidden: PropertyKey[][] = [];
  const missing: PropertyKey[][] = [];

  function copyOf(value: unknown, path: readonly PropertyKey[]): unknown {
    if (path.length > maxDepth) return value;
    if (Array.isArray(value)) return value.map((item, at) => copyOf(item, [...path, at]));
    if (!isPlain(value)) return value;
    const copy: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(value)) {
      if (key === "__proto__") forbidden.push([...path, key]);
      else if (path.length === 0 && passThrough.includes(key)) copy[key] = member;
      else if (member === undefined) missing.push([...path, key]);
      else copy[key] = copyOf(member, [...path, key]);
    }
    return copy;
  }

  return { value: copyOf(input, []), forbidden, missing };
}

function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
