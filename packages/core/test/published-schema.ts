import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";

const fixture = new URL("fixtures/openai-schema.json", import.meta.url);

/** Lists the problems of a value under a published schema; none if it is valid. */
export function createPublishedSchemas(): (name: string, value: unknown) => readonly string[] {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema(JSON.parse(readFileSync(fixture, "utf8")), "openai");
  return (name, value) => {
    const validate = ajv.getSchema(`openai#/$defs/${name}`);
    if (validate === undefined) throw new Error(`Unknown schema: ${name}.`);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
}
