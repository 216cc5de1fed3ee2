import type { FunctionTool, ResponseFormat, ToolChoice } from "../../domain/completion-request.ts";
import {
  chatTiers,
  labelFields,
  samplingFields,
  serviceTier,
  sessionFields,
  verbosity,
} from "../common-fields.ts";
import {
  carried,
  ignored,
  named,
  object,
  optional,
  required,
  unsupported,
  variants,
} from "../fields.ts";
import { listOf, mapOf, textOr } from "../lists.ts";
import { breakpointReaders } from "../provider-state.ts";
import { described, formOf, mapped, type Read, unsupportedValue } from "../read.ts";
import { flag, identifier, integer, number, oneOf, text } from "../scalars.ts";
import { functionFields, jsonSchema, toolChoiceOr } from "../tools.ts";
import { message } from "./message-schema.ts";

const functionTool: Read<FunctionTool> = mapped(
  object(
    {
      type: required(oneOf("function")),
      function: required(object(functionFields, "dropped")),
      cache_control: carried(breakpointReaders.cache_control),
      prompt_cache_breakpoint: carried(breakpointReaders.prompt_cache_breakpoint),
    },
    "dropped",
  ),
  ({ function: named, state }) => (state === undefined ? named : { ...named, state }),
);

const namedToolChoice: Read<ToolChoice> = mapped(
  object({
    type: required(oneOf("function")),
    function: required(object({ name: required(identifier) })),
  }),
  (choice) => choice.function,
);

const toolChoice = toolChoiceOr(variants("type", { function: namedToolChoice }));

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
const one: Read<number> = described(
  (value, path, limits) => {
    if (integer(1)(value, path, limits) !== 1) throw unsupportedValue("must be 1", path);
    return 1;
  },
  () => ({ const: 1 }),
);

const textOnly = listOf<string>(
  described(
    (item, at, within) => {
      if (text(item, at, within) !== "text") throw unsupportedValue("must be text", at);
      return "text";
    },
    () => ({ const: "text" }),
  ),
);

/** Another dialect's name for `reasoning_effort`, with a switch next to it; what else it offers there is not offered here. */
const reasoningFields = object({
  effort: optional(identifier),
  enabled: optional(flag),
  max_tokens: unsupported(),
  exclude: unsupported(),
  summary: unsupported(),
});

/** The effort that it asks for. Off is the effort `none`; on says nothing without an effort. */
const reasoning: Read<{ readonly effort?: string }> = described(
  (value, path, limits) => {
    const { effort, enabled } = reasoningFields(value, path, limits);
    if (enabled === false) return { effort: "none" };
    if (enabled === true && effort === undefined)
      throw unsupportedValue("needs an effort next to it", `${path}.enabled`);
    return effort === undefined ? {} : { effort };
  },
  () => formOf(reasoningFields),
);

const listed = listOf(message, {
  least: 1,
  most: (limits) => limits.messages,
  known: ({ known }) => known.messages,
});
const messages: typeof listed = described(
  (value, path, reading) => {
    const read = listed(value, path, reading);
    reading.conversationRead();
    return read;
  },
  () => formOf(listed),
);

/** The body of `POST /v1/chat/completions` (section 2.1), by its fields. */
export const chatCompletion = object({
  model: required(text),
  messages: required(messages),
  stream: optional(flag),
  stream_options: named(
    "streamOptions",
    optional(object({ include_usage: optional(flag), include_obfuscation: ignored(flag) })),
  ),
  ...sessionFields,

  tools: optional(
    listOf(variants("type", { function: functionTool }), { most: (limits) => limits.tools }),
  ),
  tool_choice: named("toolChoice", optional(toolChoice)),
  parallel_tool_calls: named("parallelToolCalls", optional(flag)),
  response_format: named("responseFormat", optional(responseFormat)),
  reasoning_effort: named("reasoningEffort", optional(identifier)),
  reasoning: optional(reasoning),
  verbosity: optional(verbosity),

  ...samplingFields,
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

  store: optional(flag),
  ...labelFields,
  service_tier: named("serviceTier", optional(serviceTier(...chatTiers))),
  modalities: ignored(textOnly),

  prediction: unsupported(),
  audio: unsupported(),
  web_search_options: unsupported(),
  moderation: unsupported(),
  functions: unsupported(),
  function_call: unsupported(),
});
