import type { FunctionTool } from "@tollgate/core/provider";

type Json = Exclude<FunctionTool["parameters"], undefined>;
type Schema = { readonly [key: string]: Json };

/** The maximum nesting for recursive schemas. */
const maxDepth = 12;

/** Returns a value that matches a JSON Schema, with content from a text where possible; `{}` without a schema. */
export function jsonSample(schema: Json | undefined, text: string): Json {
  return isSchema(schema) ? sample(schema, schema, text, 0) : {};
}

function sample(schema: Schema, root: Schema, text: string, depth: number): Json {
  const inner = (part: Json | undefined): Json =>
    isSchema(part) && depth < maxDepth ? sample(part, root, text, depth + 1) : null;
  if (schema["const"] !== undefined) return schema["const"];
  if (isList(schema["enum"])) return chooseValue(schema["enum"], text);
  if (typeof schema["$ref"] === "string") return inner(resolve(schema["$ref"], root));
  const options = schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"];
  if (isList(options)) return inner(options.find((one) => !isNullSchema(one)) ?? options[0]);
  switch (typeOf(schema)) {
    case "object":
      return sampleObject(schema, inner, depth);
    case "array":
      return depth < maxDepth ? repeat(inner(schema["items"] ?? { type: "string" }), schema) : [];
    case "string":
      return sampleString(schema, text);
    case "integer":
    case "number":
      return sampleNumber(schema, text);
    case "boolean":
      return true;
    default:
      return null;
  }
}

function sampleObject(schema: Schema, inner: (part: Json) => Json, depth: number): Json {
  const properties = isSchema(schema["properties"]) ? schema["properties"] : {};
  const required = isList(schema["required"]) ? schema["required"] : [];
  const wanted = Object.entries(properties).filter(
    ([name]) => depth < maxDepth / 2 || required.includes(name),
  );
  return Object.fromEntries(wanted.map(([name, property]) => [name, inner(property)]));
}

const formats: Readonly<Record<string, string>> = {
  date: "2026-01-31",
  time: "12:00:00Z",
  "date-time": "2026-01-31T12:00:00Z",
  email: "someone@example.com",
  uri: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
};

/** Returns the name in the text (a capitalized word inside a sentence), or else the text. */
function sampleString(schema: Schema, text: string): string {
  const format = schema["format"];
  if (typeof format === "string" && formats[format] !== undefined) return formats[format];
  const named = /[\p{L}\p{N},;:] +(\p{Lu}[\p{L}\p{N}-]+)/u.exec(text)?.[1];
  const value = named ?? text;
  return value.slice(0, numberOf(schema["maxLength"]) ?? 200).padEnd(bounded(schema["minLength"]));
}

function sampleNumber(schema: Schema, text: string): number {
  const mentioned = /-?\d+(?:\.\d+)?/.exec(text)?.[0];
  const step = numberOf(schema["multipleOf"]) ?? (schema["type"] === "integer" ? 1 : 0);
  const above = numberOf(schema["exclusiveMinimum"]);
  const below = numberOf(schema["exclusiveMaximum"]);
  const minimum = numberOf(schema["minimum"]) ?? (above === null ? null : above + (step || 1));
  const maximum = numberOf(schema["maximum"]) ?? (below === null ? null : below - (step || 1));
  const wanted = Number(mentioned ?? minimum ?? 1);
  const within = Math.min(Math.max(wanted, minimum ?? wanted), maximum ?? Number.POSITIVE_INFINITY);
  return step > 0 ? Math.round(within / step) * step : within;
}

function repeat(item: Json, schema: Schema): readonly Json[] {
  return Array.from({ length: Math.max(1, bounded(schema["minItems"])) }, () => item);
}

function chooseValue(values: readonly Json[], text: string): Json {
  const lowerCase = text.toLowerCase();
  const mentioned = values.find(
    (one) => typeof one === "string" && lowerCase.includes(one.toLowerCase()),
  );
  return mentioned ?? values[0] ?? null;
}

function typeOf(schema: Schema): Json | undefined {
  const type = schema["type"];
  if (isList(type)) return type.find((one) => one !== "null") ?? "null";
  if (type !== undefined) return type;
  if (schema["properties"] !== undefined) return "object";
  return schema["items"] === undefined ? "string" : "array";
}

/** Resolves a local reference such as `#/$defs/address`. */
function resolve(reference: string, root: Schema): Json | undefined {
  const path = reference.replace(/^#\/?/, "").split("/").filter(Boolean);
  return path.reduce<Json | undefined>((at, name) => (isSchema(at) ? at[name] : undefined), root);
}

function isNullSchema(schema: Json): boolean {
  return isSchema(schema) && schema["type"] === "null";
}

function numberOf(value: Json | undefined): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** Returns a count from the schema, up to 1,000. */
function bounded(value: Json | undefined): number {
  return Math.min(numberOf(value) ?? 0, 1_000);
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function isSchema(value: Json | undefined): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
