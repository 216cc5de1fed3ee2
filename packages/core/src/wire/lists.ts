import { defaultLimits, type Limits } from "../domain/limits.ts";
import { anyObject } from "./fields.ts";
import {
  child,
  described,
  formOf,
  type Read,
  type Reading,
  wrongType,
  wrongValue,
} from "./read.ts";

/** How many items a list has, at least and at most. */
interface Count<Item> {
  readonly least?: number;
  readonly most?: (limits: Limits) => number;
  /** The items that an earlier body gave, and this one begins with. */
  readonly known?: (reading: Reading) => readonly Item[] | undefined;
}

/** Reads every item of an array. */
export function listOf<Item>(read: Read<Item>, count: Count<Item> = {}): Read<readonly Item[]> {
  const least = count.least ?? 0;
  const form = () => ({
    type: "array",
    items: formOf(read),
    minItems: least,
    ...(count.most && { maxItems: count.most(defaultLimits) }),
  });
  return described((value, path, limits) => {
    if (!Array.isArray(value)) throw wrongType("an array", value, path);
    const most = count.most?.(limits) ?? Number.POSITIVE_INFINITY;
    const known = count.known?.(limits) ?? [];
    const length = known.length + value.length;
    if (length < least) throw wrongValue(`must have at least ${least} item`, path);
    if (length > most) throw wrongValue(`must have at most ${most} items`, path);
    const items = value.map((item: unknown, index) =>
      read(item, `${path}[${known.length + index}]`, limits),
    );
    return known.length === 0 ? items : [...known, ...items];
  }, form);
}

/** A string, or what `list` reads from an array. */
export function textOr<List>(text: Read<string>, list: Read<List>): Read<string | List> {
  return described(
    (value, path, limits) => {
      if (typeof value === "string") return text(value, path, limits);
      if (!Array.isArray(value)) throw wrongType("a string or an array", value, path);
      return list(value, path, limits);
    },
    () => ({ anyOf: [formOf(text), formOf(list)] }),
  );
}

/** Reads every member of an object whose keys are the client's own. */
export function mapOf<Value>(
  read: Read<Value>,
  bounds: { readonly most: number; readonly longestKey: number },
): Read<Readonly<Record<string, Value>>> {
  const form = () => ({
    type: "object",
    additionalProperties: formOf(read),
    maxProperties: bounds.most,
    propertyNames: { maxLength: bounds.longestKey },
  });
  return described((value, path, limits) => {
    const entries = Object.entries(anyObject(value, path, limits));
    if (entries.length > bounds.most)
      throw wrongValue(`must have at most ${bounds.most} members`, path);
    return Object.fromEntries(
      entries.map(([key, member]) => {
        const at = child(path, key);
        if (key.length > bounds.longestKey)
          throw wrongValue(`must have a name of at most ${bounds.longestKey} characters`, at);
        return [key, read(member, at, limits)];
      }),
    );
  }, form);
}
