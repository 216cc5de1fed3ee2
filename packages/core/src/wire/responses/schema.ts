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
  anyObject,
  ignored,
  object,
  optional,
  renamed,
  required,
  unsupported,
  variants,
} from "../fields.ts";
import { listOf } from "../lists.ts";
import { breakpoints } from "../provider-state.ts";
import { mapped, only, type Reader, unsupportedValue, withSchema } from "../read.ts";
import { content, flag, identifier, integer, oneOf, text } from "../scalars.ts";
import { functionFields, jsonSchema, toolChoiceOr } from "../tools.ts";
import { input } from "./item-schema.ts";
import type { NamespaceTool } from "./namespaces.ts";

const functionTool: Reader<FunctionTool> = mapped(
  object(
    {
      type: required(oneOf("function")),
      ...functionFields,
      ...breakpoints,
    },
    "dropped",
  ),
  ({ type, ...tool }) => tool,
);

/** A group of functions. Custom tools aren't supported in it. */
const namespaceTool: Reader<NamespaceTool> = object(
  {
    type: required(oneOf("namespace")),
    name: required(identifier),
    description: optional(text),
    tools: required(
      listOf(variants("type", { function: functionTool }), {
        min: 1,
        max: (limits) => limits.tools,
      }),
    ),
  },
  "dropped",
);

const namedToolChoice: Reader<ToolChoice> = mapped(
  object({ type: required(oneOf("function")), name: required(identifier) }),
  ({ name }) => ({ name }),
);

const responseFormat: Reader<ResponseFormat> = variants("type", {
  text: object({ type: required(oneOf("text")) }),
  json_object: object({ type: required(oneOf("json_object")) }),
  json_schema: object({
    type: required(oneOf("json_schema")),
    name: required(identifier),
    description: optional(text),
    schema: required(jsonSchema),
    strict: optional(flag),
  }),
});

const summaryLength = oneOf("auto", "concise", "detailed");

const reasoning = object({
  effort: optional(identifier),
  summary: optional(summaryLength),
  generate_summary: renamed("generateSummary", optional(summaryLength)),
  context: unsupported(),
  mode: unsupported(),
});

/** Requests log probabilities, without alternatives unless `top_logprobs` requests some. */
export const includedLogprobs = "message.output_text.logprobs";

/** The accepted values of `include`. Sealed reasoning and log probabilities are added; the rest is always included. */
const includable = new Set([
  "reasoning.encrypted_content",
  includedLogprobs,
  "message.input_image.image_url",
]);

const include = listOf<string>(
  withSchema(
    (value, path, limits) => {
      const name = text(value, path, limits);
      if (!includable.has(name)) throw unsupportedValue("is not supported", path);
      return name;
    },
    () => ({ enum: [...includable] }),
  ),
);

/** The body of `POST /v1/responses` (section 2.5), by its fields. */
export const responseRequest = object({
  model: required(text),
  input: required(input),
  instructions: optional(content),
  previous_response_id: renamed("previousResponseId", optional(text)),
  store: optional(flag),
  stream: optional(flag),
  stream_options: ignored(object({ include_obfuscation: ignored(flag) })),
  ...sessionFields,

  tools: optional(
    listOf(variants("type", { function: functionTool, namespace: namespaceTool }), {
      max: (limits) => limits.tools,
    }),
  ),
  tool_choice: renamed(
    "toolChoice",
    optional(toolChoiceOr(variants("type", { function: namedToolChoice }))),
  ),
  parallel_tool_calls: renamed("parallelToolCalls", optional(flag)),
  text: optional(object({ format: optional(responseFormat), verbosity: optional(verbosity) })),
  reasoning: optional(reasoning),

  ...samplingFields,
  max_output_tokens: renamed("maxOutputTokens", optional(integer(1))),
  top_logprobs: renamed("topLogprobs", optional(integer(0, 20))),
  truncation: optional(oneOf("auto", "disabled")),

  ...labelFields,
  service_tier: renamed("serviceTier", optional(serviceTier(...chatTiers, "ultrafast"))),
  include: optional(include),
  client_metadata: ignored(anyObject),

  background: ignored(only(flag, false)),
  conversation: unsupported(),
  context_management: unsupported(),
  prompt: unsupported(),
  max_tool_calls: unsupported(),
  moderation: unsupported(),
  access_programs: unsupported(),
  image: unsupported(),
});
