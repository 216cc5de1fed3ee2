import type { Schema } from "./read.ts";
import {
  dataClassName,
  duration,
  modelPattern,
  opaqueId,
  organizationOrAll,
  usd,
} from "./values.ts";
import * as z from "./z.ts";

/** A JSON Schema of draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Checks that JSON Schema can express. Others only have their rule as a description. Never stricter than zod. */
const forms: ReadonlyMap<unknown, JsonSchema> = new Map<unknown, JsonSchema>([
  [opaqueId, { minLength: 1, maxLength: 255 }],
  [dataClassName, { pattern: "^[A-Za-z0-9_.-]{1,64}$" }],
  [modelPattern, { pattern: "^[^\\s/]+(/[^\\s/]+){2,}$", maxLength: 255 }],
  [organizationOrAll, { type: "string", minLength: 1, maxLength: 255, anyOf: undefined }],
  [
    duration,
    {
      anyOf: [
        { type: "integer", minimum: 0 },
        { type: "string", pattern: "^\\d{1,12}(ms|s|m|h|d)$" },
      ],
    },
  ],
  [
    usd,
    {
      anyOf: [
        { type: "number", minimum: 0 },
        { type: "string", pattern: "^\\d{1,15}(\\.\\d{1,20})?$" },
      ],
    },
  ],
]);

/**
 * Describes a schema's input as a JSON Schema of draft 2020-12, for editors and for checks in other languages. It accepts
 * everything that the schema accepts. Rules between members, such as ascending thresholds, are only in the schema.
 */
export function jsonSchemaOf(schema: Schema<unknown>): JsonSchema {
  return z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override({ zodSchema, jsonSchema }) {
      const rule = ruleOf(zodSchema);
      if (rule !== null) jsonSchema.description ??= rule;
      Object.assign(jsonSchema, forms.get(zodSchema));
    },
  });
}

/** The message of a custom check. */
function ruleOf({ _zod: { def } }: z.core.$ZodType): string | null {
  if (!("error" in def) || typeof def.error !== "function") return null;
  const words: unknown = Reflect.apply(def.error, undefined, [{ path: [] }]);
  return typeof words === "string" && words !== "" ? words : null;
}
