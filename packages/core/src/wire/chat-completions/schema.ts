import type { FunctionTool, ResponseFormat, ToolChoice } from "../../domain/completion-request.ts";
import {
  chatTiers,
  labelFields,
  samplingFields,
  serviceTier,
  sessionFields,
  verbosity,
} from "../common-fields.ts";
import { ignored, object, optional, renamed, required, unsupported, variants } from "../fields.ts";
import { listOf, mapOf, messagesOf, textOr } from "../lists.ts";
import { breakpoints } from "../provider-state.ts";
import { mapped, only, type Reader, schemaOf, unsupportedValue, withSchema } from "../read.ts";
import { flag, identifier, integer, number, oneOf, text } from "../scalars.ts";
import { functionFields, jsonSchema, toolChoiceOr } from "../tools.ts";
import { message } from "./message-schema.ts";

const functionTool: Reader<FunctionTool> = mapped(
  object(
    {
      type: required(oneOf("function")),
      function: required(object(functionFields, "dropped")),
      ...breakpoints,
    },
    "dropped",
  ),
  ({ function: named, state }) => (state === undefined ? named : { ...named, state }),
);

const namedToolChoice: Reader<ToolChoice> = mapped(
  object({
    type: required(oneOf("function")),
    function: required(object({ name: required(identifier) })),
  }),
  (choice) => choice.function,
);

const toolChoice = toolChoiceOr(variants("type", { function: namedToolChoice }));

const jsonSchemaFormat: Reader<ResponseFormat> = mapped(
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

const responseFormat: Reader<ResponseFormat> = variants("type", {
  text: object({ type: required(oneOf("text")) }),
  json_object: object({ type: required(oneOf("json_object")) }),
  json_schema: jsonSchemaFormat,
});

const stop = textOr(text, listOf(text, { min: 1, max: () => 4 }));

/** Another dialect's form of `reasoning_effort`, with a switch. Its other members aren't supported. */
const reasoningFields = object({
  effort: optional(identifier),
  enabled: optional(flag),
  max_tokens: unsupported(),
  exclude: unsupported(),
  summary: unsupported(),
});

/** The requested effort. Off means the effort `none`. On is only accepted together with an effort. */
const reasoning: Reader<{ readonly effort?: string }> = withSchema(
  (value, path, limits) => {
    const { effort, enabled } = reasoningFields(value, path, limits);
    if (enabled === false) return { effort: "none" };
    if (enabled === true && effort === undefined)
      throw unsupportedValue("requires `effort`", `${path}.enabled`);
    return effort === undefined ? {} : { effort };
  },
  () => schemaOf(reasoningFields),
);

const messages = messagesOf(message, ({ known }) => known.messages);

/** The body of `POST /v1/chat/completions` (section 2.1), by its fields. */
export const chatCompletion = object({
  model: required(text),
  messages: required(messages),
  stream: optional(flag),
  stream_options: renamed(
    "streamOptions",
    optional(object({ include_usage: optional(flag), include_obfuscation: ignored(flag) })),
  ),
  ...sessionFields,

  tools: optional(
    listOf(variants("type", { function: functionTool }), { max: (limits) => limits.tools }),
  ),
  tool_choice: renamed("toolChoice", optional(toolChoice)),
  parallel_tool_calls: renamed("parallelToolCalls", optional(flag)),
  response_format: renamed("responseFormat", optional(responseFormat)),
  reasoning_effort: renamed("reasoningEffort", optional(identifier)),
  reasoning: optional(reasoning),
  verbosity: optional(verbosity),

  ...samplingFields,
  seed: optional(integer(Number.MIN_SAFE_INTEGER)),
  logit_bias: renamed(
    "logitBias",
    optional(mapOf(number(-100, 100), { maxMembers: 1_024, maxKeyLength: 64 })),
  ),
  logprobs: optional(flag),
  top_logprobs: renamed("topLogprobs", optional(integer(0, 20))),
  max_completion_tokens: renamed("maxCompletionTokens", optional(integer(1))),
  max_tokens: renamed("maxTokens", optional(integer(1))),
  stop: optional(stop),
  // A Session continues with exactly one message.
  n: ignored(only(integer(1), 1)),

  store: optional(flag),
  ...labelFields,
  service_tier: renamed("serviceTier", optional(serviceTier(...chatTiers))),
  modalities: ignored(listOf(only(text, "text"))),

  prediction: unsupported(),
  audio: unsupported(),
  web_search_options: unsupported(),
  moderation: unsupported(),
  functions: unsupported(),
  function_call: unsupported(),
});
