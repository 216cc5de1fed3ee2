import { maxMessageState, maxStateDepth } from "../domain/provider-state.ts";
import { isLongNumber } from "../kernel/json-guard.ts";
import type { Json } from "../kernel/stable-json.ts";
import { anyObject, carried, unsupported } from "./fields.ts";
import { type Reader, schemaOf, withSchema, wrongType, wrongValue } from "./read.ts";
import { content } from "./scalars.ts";

/** State that is an object, such as a cache breakpoint. */
export const stateObject: Reader<Json> = withSchema(
  (value, path, limits) =>
    // The body comes from JSON.parse, so it is JSON.
    shallow(anyObject(value, path, limits) as Json, path, 1),
  () => schemaOf(anyObject),
);

/** State that is a list, such as signed blocks of thinking. */
export const stateList: Reader<Json> = withSchema(
  (value, path) => {
    if (!Array.isArray(value)) throw wrongType("an array", value, path);
    return shallow(value, path, 1);
  },
  () => ({ type: "array" }),
);

/** State that is text, such as reasoning. */
export const stateText: Reader<Json> = content;

function shallow<Value extends Json | undefined>(value: Value, path: string, depth: number): Value {
  if (typeof value !== "object" || value === null) return value;
  // State is recorded and read again, which would change its digits.
  if (isLongNumber(value)) throw wrongValue("must have no number that loses digits", path);
  if (depth > maxStateDepth) throw wrongValue(`must be nested at most ${maxStateDepth} deep`, path);
  for (const member of Object.values(value)) shallow(member, path, depth + 1);
  return value;
}

/** Members in which a model's message brings back its reasoning, by the names that providers and gateways use. */
export const thoughtReaders = {
  reasoning_content: stateText,
  reasoning: stateText,
  reasoning_details: stateList,
  thinking_blocks: stateList,
  provider_specific_fields: stateObject,
};

/** Members in which a tool call brings back a signature. */
export const callStateReaders = {
  extra_content: stateObject,
  provider_specific_fields: stateObject,
};

/** Members in which a message, a part or a tool marks where a provider's cache may end. */
export const breakpoints = {
  cache_control: carried(stateObject),
  prompt_cache_breakpoint: carried(stateObject),
};

/** Content that isn't supported anywhere in a history. */
export const unsupportedContent = {
  audio: unsupported(),
  function_call: unsupported(),
  file_id: unsupported(),
  file_url: unsupported(),
  file_data: unsupported(),
};

/** The approximate bytes of state as JSON. Escapes aren't counted. */
export function stateBytes(value: Json | undefined): number {
  if (typeof value === "string") return Buffer.byteLength(value) + 2;
  if (typeof value !== "object" || value === null) return 5;
  let bytes = 2;
  for (const [key, member] of Object.entries(value)) bytes += key.length + 4 + stateBytes(member);
  return bytes;
}

/** Refuses a message if its state, of this many bytes, is too large. */
export function requireSmallState(bytes: number, path: string): void {
  if (bytes > maxMessageState.bytes)
    throw wrongValue(
      `must contain at most ${maxMessageState.bytes} bytes of reasoning and other provider state`,
      path,
    );
}
