import type { CompletionRequest, FunctionTool, ToolChoice } from "../domain/completion-request.ts";
import type { Json } from "../kernel/stable-json.ts";
import { anyObject, optional, required } from "./fields.ts";
import {
  type ReadContext,
  type Reader,
  schemaOf,
  withSchema,
  wrongType,
  wrongValue,
} from "./read.ts";
import { flag, identifier, oneOf, text } from "./scalars.ts";

/**
 * A JSON Schema, which is the client's own data and stays unchanged. The depth is checked before the body is parsed, and the
 * length of strings here. Errors name only the schema, because a path into it would consist of the client's own words.
 */
export const jsonSchema: Reader<Json> = withSchema(
  (value, path, limits) => {
    // The body comes from JSON.parse, so it is JSON.
    const schema = anyObject(value, path, limits) as Json;
    requireShortStrings(schema, path, limits);
    return schema;
  },
  () => schemaOf(anyObject),
);

function requireShortStrings(value: Json | undefined, path: string, limits: ReadContext): void {
  if (typeof value === "string") text(value, path, limits);
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    text(key, path, limits);
    requireShortStrings(member, path, limits);
  }
}

/** The members of a function, which both protocols have, though in different places. */
export const functionFields = {
  name: required(identifier),
  description: optional(text),
  parameters: optional(jsonSchema),
  strict: optional(flag),
};

const toolChoiceWord = oneOf("none", "auto", "required");

/** A tool choice as a word, or as an object that `object` reads. */
export function toolChoiceOr(object: Reader<ToolChoice>): Reader<ToolChoice> {
  return withSchema(
    (value, path, limits) => {
      if (typeof value === "string") return toolChoiceWord(value, path, limits);
      if (typeof value !== "object") throw wrongType("a string or an object", value, path);
      return object(value, path, limits);
    },
    () => ({ anyOf: [schemaOf(toolChoiceWord), schemaOf(object)] }),
  );
}

/** The members of a request that are about tools. */
interface ToolUse {
  readonly tools: readonly FunctionTool[];
  readonly toolChoice: ToolChoice | undefined;
  readonly parallelToolCalls: boolean | undefined;
}

/**
 * Checks the members about tools together. Without tools, a choice of `auto` or `none` and parallel calls are accepted but
 * have no effect. `nameAt` is the path of the chosen function's name.
 */
export function toolUse(
  { tools, toolChoice, parallelToolCalls }: ToolUse,
  nameAt: string,
): Pick<CompletionRequest, "tools" | "toolChoice" | "parallelToolCalls"> {
  if (tools.length === 0) {
    if (toolChoice === undefined || toolChoice === "auto" || toolChoice === "none") return {};
    throw wrongValue("requires a tool call, but the request has no tools", "tool_choice");
  }
  if (typeof toolChoice === "object" && !tools.some((tool) => tool.name === toolChoice.name))
    throw wrongValue("names a function that is not among the tools", nameAt);
  return {
    tools,
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(parallelToolCalls === undefined ? {} : { parallelToolCalls }),
  };
}
