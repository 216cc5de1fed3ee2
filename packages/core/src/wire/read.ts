import type { Limits } from "../domain/limits.ts";
import type { Message } from "../domain/message.ts";
import type { DroppedFields } from "../domain/step.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { InputItem } from "./responses/items.ts";

/** The context in which one body is read: its limits, and callbacks for members that are dropped. */
export interface ReadContext extends Limits {
  /** Whether function outputs may contain images. */
  readonly toolOutputs: "text" | "parts";
  /** Called with the name of each unknown member that is dropped. */
  readonly noteDropped: (name: string) => void;
  /** The part of the conversation that was read from an earlier body. */
  readonly known: KnownItems;
  /** Called after the conversation is read. Everything dropped so far belongs to it. */
  readonly conversationRead: () => void;
}

/** The beginning of a conversation in one protocol, as read from an earlier body. */
export interface KnownItems {
  readonly messages?: readonly Message[];
  readonly items?: readonly InputItem[];
  /** Of the Messages API: the messages of each of the client's messages. */
  readonly groups?: readonly (readonly Message[])[];
  /** The members dropped while it was read. */
  readonly droppedFields?: DroppedFields;
}

/**
 * Reads one value of a request body. Returns a new, checked value, or throws a GatewayError that names the path. If it
 * returns undefined, the member is omitted.
 */
export interface Reader<Value> {
  (value: unknown, path: string, limits: ReadContext): Value;
  /** Its input as JSON Schema; absent if JSON Schema can't express it. */
  readonly schema?: () => BodySchema;
}

/** A JSON Schema of a reader's input, under the default limits. */
export type BodySchema = Readonly<Record<string, unknown>>;

/** Adds a schema of its input to a reader. The schema is only created on request. */
export function withSchema<Value>(
  read: (value: unknown, path: string, limits: ReadContext) => Value,
  schema: () => BodySchema,
): Reader<Value> {
  return Object.assign(read, { schema });
}

/** Reads the one supported value. Any other value of its type is unsupported. */
export function only<const Value>(read: Reader<Value>, value: Value): Reader<Value> {
  return withSchema(
    (given, path, limits) => {
      if (read(given, path, limits) !== value) throw unsupportedValue(`must be ${value}`, path);
      return value;
    },
    () => ({ const: value }),
  );
}

/** The schema of a reader's input; one that accepts anything if the reader has none. */
export function schemaOf(read: Reader<unknown>): BodySchema {
  return read.schema?.() ?? {};
}

/** The path of a member. Clients choose the keys, so long ones are cut. */
export function memberPath(path: string, key: string): string {
  const name = key.length > 64 ? `${key.slice(0, 64).toWellFormed()}…` : key;
  return path === "" ? name : `${path}.${name}`;
}

export function wrongType(expected: string, value: unknown, path: string): GatewayError {
  const message = `'${path}' must be ${expected}, not ${typeName(value)}.`;
  return new GatewayError("invalid_type", message, { param: path });
}

export function wrongValue(rule: string, path: string): GatewayError {
  return new GatewayError("invalid_value", `'${path}' ${rule}.`, { param: path });
}

export function unsupportedValue(rule: string, path: string): GatewayError {
  return new GatewayError("unsupported_value", `'${path}' ${rule}.`, { param: path });
}

export function missing(path: string): GatewayError {
  return new GatewayError("missing_required_parameter", `'${path}' is required.`, { param: path });
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** A reader that changes the result of another one. */
export function mapped<From, To>(read: Reader<From>, change: (value: From) => To): Reader<To> {
  return withSchema(
    (value, path, limits) => change(read(value, path, limits)),
    () => schemaOf(read),
  );
}
