import type { ProviderState } from "../domain/message.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { isLongNumber } from "../kernel/json-guard.ts";
import { isObject, type Json } from "../kernel/stable-json.ts";
import {
  type BodySchema,
  memberPath,
  missing,
  type Reader,
  schemaOf,
  unsupportedValue,
  withSchema,
  wrongType,
} from "./read.ts";

type Presence = "required" | "optional" | "ignored" | "carried";

/** One member of an object: whether it is required, its name in the result, and its reader. */
export interface Field<Value, Given extends Presence, Name extends string> {
  readonly presence: Given;
  /** The name in the result. Empty if the member keeps its own. */
  readonly name: Name;
  readonly read: Reader<Value>;
}

type Fields = Readonly<Record<string, Field<unknown, Presence, string>>>;

/** The member's name in the result if it has this presence, otherwise `never`. */
type NameOf<F, Key, Given extends Presence> =
  F extends Field<unknown, Given, infer Name> ? (Name extends "" ? Key : Name) : never;
/** `state` if any member is carried in it. */
type StateName<F> = F extends { readonly presence: "carried" } ? "state" : never;
type ValueOf<F> = F extends { readonly read: Reader<infer Value> } ? Value : never;
type Flat<T> = { [Key in keyof T]: T[Key] };

/** The result of reading an object: its required and optional members, and `state` with its carried members. */
export type Values<F> = Flat<
  {
    readonly [Key in keyof F as NameOf<F[Key], Key, "required"> & string]: ValueOf<F[Key]>;
  } & {
    readonly [Key in keyof F as NameOf<F[Key], Key, "optional"> & string]?: Exclude<
      ValueOf<F[Key]>,
      undefined
    >;
  } & { readonly [Key in keyof F as StateName<F[Key]>]?: ProviderState }
>;

/** A required member. Null counts as absent. */
export function required<Value>(read: Reader<Value>): Field<Value, "required", ""> {
  return { presence: "required", name: "", read };
}

/** A member that may be absent or null. It is then absent from the result. */
export function optional<Value>(read: Reader<Value>): Field<Value, "optional", ""> {
  return { presence: "optional", name: "", read };
}

/** A member that has another name in the result. */
export function renamed<Value, Given extends Presence, const Name extends string>(
  name: Name,
  field: Field<Value, Given, string>,
): Field<Value, Given, Name> {
  return { ...field, name };
}

/** A member that is accepted but has no effect. */
export function ignored(read: Reader<unknown> = (value) => value): Field<unknown, "ignored", ""> {
  return { presence: "ignored", name: "", read };
}

const nothing: BodySchema = { type: "null" };

/** A known member that is refused unless it is null. */
export function unsupported(): Field<unknown, "ignored", ""> {
  return ignored(
    withSchema(
      (_value, path) => {
        throw new GatewayError("unsupported_parameter", `'${path}' is not supported.`, {
          param: path,
        });
      },
      () => nothing,
    ),
  );
}

/** A member that belongs to a provider. The result's `state` carries it under its own name. */
export function carried(read: Reader<Json>): Field<Json, "carried", ""> {
  return { presence: "carried", name: "", read };
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** Any JSON object, unchanged. */
export const anyObject: Reader<JsonObject> = withSchema(
  (value, path) => {
    if (!isObject(value)) throw wrongType("an object", value, path);
    if (isLongNumber(value)) throw wrongType("an object", 0, path);
    return value;
  },
  () => ({ type: "object" }),
);

/**
 * Reads an object by its fields, in their order. Before that, other members are refused, or dropped and counted. A null
 * member counts as absent.
 */
export function object<const F extends Fields>(
  fields: F,
  others: "refused" | "dropped" = "refused",
): Reader<Values<F>> {
  const known = new Set(Object.keys(fields));
  const entries = Object.entries(fields).map(([key, field]) => ({
    ...field,
    key,
    name: field.name || key,
  }));

  const schema = (): BodySchema => ({
    type: "object",
    properties: Object.fromEntries(
      entries.map(({ key, presence, read }) => [
        key,
        presence === "required" ? schemaOf(read) : orNull(schemaOf(read)),
      ]),
    ),
    required: entries.filter(({ presence }) => presence === "required").map(({ key }) => key),
    additionalProperties: others === "refused" ? nothing : true,
  });

  return withSchema((value, path, limits) => {
    const given = anyObject(value, path, limits);
    for (const key of Object.keys(given)) {
      if (known.has(key) || given[key] === null) continue;
      if (others === "refused") throw unknownMember(path, key);
      limits.noteDropped(key);
    }
    const result: Record<string, unknown> = {};
    const state: Record<string, Json> = {};
    for (const { key, name, presence, read } of entries) {
      const member = given[key] ?? null;
      if (member === null) {
        if (presence === "required") throw missing(memberPath(path, key));
        continue;
      }
      const taken = read(member, memberPath(path, key), limits);
      if (presence === "ignored" || taken === undefined) continue;
      // Carried members were read as JSON.
      if (presence === "carried") state[key] = taken as Json;
      else result[name] = taken;
    }
    if (Object.keys(state).length > 0) result["state"] = { from: null, fields: state };
    // The loop above made exactly the members that `Values` derives from the same fields.
    return result as Values<F>;
  }, schema);
}

/** A null member counts as absent, so its schema also accepts null. */
function orNull(schema: BodySchema): BodySchema {
  return schema === nothing ? nothing : { anyOf: [schema, nothing] };
}

function unknownMember(path: string, key: string): GatewayError {
  const param = memberPath(path, key);
  return new GatewayError("unknown_parameter", `'${param}' is not a known parameter.`, { param });
}

/** Reads an object with the reader that its `tag` member names. Any other name is unsupported. */
export function variants<const V extends Readonly<Record<string, Reader<unknown>>>>(
  tag: string,
  readers: V,
): Reader<ValueOfReaders<V>> {
  const table = new Map<string, Reader<unknown>>(Object.entries(readers));
  const names = [...table.keys()].join(", ");
  const schema = (): BodySchema => ({
    anyOf: [...table].map(([name, read]) => ({
      type: "object",
      properties: { [tag]: { const: name } },
      required: [tag],
      allOf: [schemaOf(read)],
    })),
  });
  return withSchema((value, path, limits) => {
    const kind = anyObject(value, path, limits)[tag] ?? null;
    const at = memberPath(path, tag);
    if (kind === null) throw missing(at);
    if (typeof kind !== "string") throw wrongType("a string", kind, at);
    const read = table.get(kind);
    if (read === undefined) throw unsupportedValue(`is not supported; use ${names}`, at);
    // One of the readers of `V`, and so one of their values.
    return read(value, path, limits) as ValueOfReaders<V>;
  }, schema);
}

type ValueOfReaders<V> = {
  [Name in keyof V]: V[Name] extends Reader<infer Value> ? Value : never;
}[keyof V];
