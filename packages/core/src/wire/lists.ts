import { defaultLimits, type Limits } from "../domain/limits.ts";
import { isLonger } from "../kernel/surrogates.ts";
import { anyObject } from "./fields.ts";
import {
  memberPath,
  type ReadContext,
  type Reader,
  schemaOf,
  withSchema,
  wrongType,
  wrongValue,
} from "./read.ts";

/** The minimum and maximum number of items in a list. */
interface Count<Item> {
  readonly min?: number;
  readonly max?: (limits: Limits) => number;
  /** The first items, if they were read from an earlier body. */
  readonly known?: (reading: ReadContext) => readonly Item[] | undefined;
}

/** Reads every item of an array. */
export function listOf<Item>(read: Reader<Item>, count: Count<Item> = {}): Reader<readonly Item[]> {
  const min = count.min ?? 0;
  const schema = () => ({
    type: "array",
    items: schemaOf(read),
    minItems: min,
    ...(count.max && { maxItems: count.max(defaultLimits) }),
  });
  return withSchema((value, path, limits) => {
    if (!Array.isArray(value)) throw wrongType("an array", value, path);
    const max = count.max?.(limits) ?? Number.POSITIVE_INFINITY;
    const known = count.known?.(limits) ?? [];
    const length = known.length + value.length;
    if (length < min) throw wrongValue(`must have at least ${min} item`, path);
    if (length > max) throw wrongValue(`must have at most ${max} items`, path);
    const items = value.map((item: unknown, index) =>
      read(item, `${path}[${known.length + index}]`, limits),
    );
    return known.length === 0 ? items : [...known, ...items];
  }, schema);
}

/** Reads the messages of a request: the whole conversation. */
export function messagesOf<Item>(
  message: Reader<Item>,
  known: NonNullable<Count<Item>["known"]>,
): Reader<readonly Item[]> {
  const listed = listOf(message, { min: 1, max: (limits) => limits.messages, known });
  return withSchema(
    (value, path, reading) => {
      const read = listed(value, path, reading);
      reading.conversationRead();
      return read;
    },
    () => schemaOf(listed),
  );
}

/** A string, or an array that `list` reads. */
export function textOr<List>(text: Reader<string>, list: Reader<List>): Reader<string | List> {
  return withSchema(
    (value, path, limits) => {
      if (typeof value === "string") return text(value, path, limits);
      if (!Array.isArray(value)) throw wrongType("a string or an array", value, path);
      return list(value, path, limits);
    },
    () => ({ anyOf: [schemaOf(text), schemaOf(list)] }),
  );
}

/** Reads every member of an object whose keys the client chooses. */
export function mapOf<Value>(
  read: Reader<Value>,
  bounds: { readonly maxMembers: number; readonly maxKeyLength: number },
): Reader<Readonly<Record<string, Value>>> {
  const schema = () => ({
    type: "object",
    additionalProperties: schemaOf(read),
    maxProperties: bounds.maxMembers,
    propertyNames: { maxLength: bounds.maxKeyLength },
  });
  return withSchema((value, path, limits) => {
    const entries = Object.entries(anyObject(value, path, limits));
    if (entries.length > bounds.maxMembers)
      throw wrongValue(`must have at most ${bounds.maxMembers} members`, path);
    return Object.fromEntries(
      entries.map(([key, member]) => {
        const at = memberPath(path, key);
        if (isLonger(key, bounds.maxKeyLength))
          throw wrongValue(`must have a name of at most ${bounds.maxKeyLength} characters`, at);
        return [key, read(member, at, limits)];
      }),
    );
  }, schema);
}
