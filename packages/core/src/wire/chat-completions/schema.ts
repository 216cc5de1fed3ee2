import type { FunctionTool, ResponseFormat, ToolChoice } from "../../domain/completion-request.ts";
import type { Json } from "../../kernel/stable-json.ts";
import {
  anyObject,
  ignored,
  named,
  object,
  optional,
  required,
  unsupported,
  variants,
} from "../fields.ts";
import { listOf, mapOf, textOr } from "../lists.ts";
import { mapped, type Read, unsupportedValue, wrongType } from "../read.ts";
import { flag, identifier, integer, number, oneOf, shortText, text, uuid } from "../scalars.ts";
import { message } from "./message-schema.ts";

/** A JSON Schema: data of the client's own, kept as it came. Its depth is bounded before the body is parsed. */
const jsonSchema: Read<Json> = (value, path, limits) =>
  // What JSON.parse made is JSON.
  anyObject(value, path, limits) as Json;

const functionTool: Read<FunctionTool> = mapped(
  object(
    {
      type: required(oneOf("function")),
      function: required(
        object(
          {
            name: required(identifier),
            description: optional(text),
            parameters: optional(jsonSchema),
            strict: optional(flag),
          },
          "dropped",
        ),
      ),
    },
    "dropped",
  ),
  (tool) => tool.function,
);

const namedToolChoice: Read<ToolChoice> = mapped(
  object({
    type: required(oneOf("function")),
    function: required(object({ name: required(identifier) })),
  }),
  (choice) => choice.function,
);

const toolChoiceWord = oneOf("none", "auto", "required");
const toolChoiceObject = variants("type", { function: namedToolChoice });

const toolChoice: Read<ToolChoice> = (value, path, limits) => {
  if (typeof value === "string") return toolChoiceWord(value, path, limits);
  if (typeof value !== "object") throw wrongType("a string or an object", value, path);
  return toolChoiceObject(value, path, limits);
};

const jsonSchemaFormat: Read<ResponseFormat> = mapped(
  object({
    type: required(oneOf("json_schema")),
    json_schema: required(
      object({
        name: required(identifier),
        description: optional(text),
        schema: optional(jsonSchema),
        strict: optional(flag),
      }),
    ),
  }),
  (format) => ({ type: format.type, ...format.json_schema }),
);

const responseFormat: Read<ResponseFormat> = variants("type", {
  text: object({ type: required(oneOf("text")) }),
  json_object: object({ type: required(oneOf("json_object")) }),
  json_schema: jsonSchemaFormat,
});

const stop = textOr(text, listOf(text, { least: 1, most: () => 4 }));

/** One answer per request: what a Session continues with must be one message. */
const one: Read<number> = (value, path, limits) => {
  if (integer(1)(value, path, limits) !== 1) throw unsupportedValue("must be 1", path);
  return 1;
};

const textOnly: Read<readonly string[]> = (value, path, limits) =>
  listOf<string>((item, at, within) => {
    if (text(item, at, within) !== "text") throw unsupportedValue("must be text", at);
    return "text";
  })(value, path, limits);

/** `auto` and `default` ask for nothing in particular. */
const serviceTier = mapped(oneOf("auto", "default", "flex", "scale", "priority", "fast"), (tier) =>
  tier === "auto" || tier === "default" ? undefined : tier,
);

/** The body of `POST /v1/chat/completions` (section 2.1), by its fields. */
export const chatCompletion = object({
  model: required(text),
  messages: required(listOf(message, { least: 1, most: (limits) => limits.messages })),
  stream: optional(flag),
  stream_options: named(
    "streamOptions",
    optional(object({ include_usage: optional(flag), include_obfuscation: ignored(flag) })),
  ),
  session_id: named("sessionId", optional(uuid)),
  turn_id: named("turnId", optional(uuid)),

  tools: optional(
    listOf(variants("type", { function: functionTool }), { most: (limits) => limits.tools }),
  ),
  tool_choice: named("toolChoice", optional(toolChoice)),
  parallel_tool_calls: named("parallelToolCalls", optional(flag)),
  response_format: named("responseFormat", optional(responseFormat)),
  reasoning_effort: named("reasoningEffort", optional(identifier)),
  verbosity: optional(oneOf("low", "medium", "high")),

  temperature: optional(number(0, 2)),
  top_p: named("topP", optional(number(0, 1))),
  frequency_penalty: named("frequencyPenalty", optional(number(-2, 2))),
  presence_penalty: named("presencePenalty", optional(number(-2, 2))),
  seed: optional(integer(Number.MIN_SAFE_INTEGER)),
  logit_bias: named(
    "logitBias",
    optional(mapOf(number(-100, 100), { most: 1_024, longestKey: 64 })),
  ),
  logprobs: optional(flag),
  top_logprobs: named("topLogprobs", optional(integer(0, 20))),
  max_completion_tokens: named("maxCompletionTokens", optional(integer(1))),
  max_tokens: named("maxTokens", optional(integer(1))),
  stop: optional(stop),
  n: ignored(one),

  user: optional(text),
  metadata: optional(mapOf(shortText(512, 0), { most: 16, longestKey: 64 })),
  store: optional(flag),
  prompt_cache_key: named("promptCacheKey", optional(text)),
  safety_identifier: named("safetyIdentifier", optional(shortText(64))),
  service_tier: named("serviceTier", optional(serviceTier)),
  prompt_cache_retention: ignored(text),
  prompt_cache_options: ignored(anyObject),
  modalities: ignored(textOnly),

  prediction: unsupported(),
  audio: unsupported(),
  web_search_options: unsupported(),
  moderation: unsupported(),
  functions: unsupported(),
  function_call: unsupported(),
});
