import type {
  FunctionTool,
  ResponseFormat,
  Thinking,
  ToolChoice,
} from "../../domain/completion-request.ts";
import type { Message } from "../../domain/message.ts";
import type { Json } from "../../kernel/stable-json.ts";
import { sessionFields } from "../common-fields.ts";
import {
  anyObject,
  carried,
  ignored,
  object,
  optional,
  renamed,
  required,
  unsupported,
  variants,
} from "../fields.ts";
import { listOf, messagesOf } from "../lists.ts";
import { breakpoints, stateObject } from "../provider-state.ts";
import {
  mapped,
  memberPath,
  only,
  type Reader,
  schemaOf,
  unsupportedValue,
  withSchema,
} from "../read.ts";
import { flag, identifier, integer, number, oneOf, shortText, text } from "../scalars.ts";
import { jsonSchema } from "../tools.ts";
import { message, textBlocks } from "./content-schema.ts";

const stateOfTool = {
  cache_control: breakpoints.cache_control,
  eager_input_streaming: carried(flag),
  // The body comes from JSON.parse, so they are JSON.
  input_examples: carried(listOf(anyObject, { max: () => 64 }) as Reader<Json>),
};

const customTool: Reader<FunctionTool> = mapped(
  object(
    {
      name: required(identifier),
      type: optional(oneOf("custom")),
      description: optional(text),
      input_schema: renamed("parameters", required(jsonSchema)),
      strict: optional(flag),
      ...stateOfTool,
    },
    "dropped",
  ),
  ({ type: _, ...tool }) => tool,
);

const shownName = /^[a-z0-9_]{1,64}$/;

/** A tool with its own schema. Tools that the provider defines or runs are refused by name. */
const tool: Reader<FunctionTool> = withSchema(
  (value, path, limits) => {
    const { type = null } = anyObject(value, path, limits);
    if (typeof type === "string" && type !== "custom") {
      const name = shownName.test(type) ? `: '${type}'` : "";
      const rule = `names a tool that the provider defines or runs, which is not supported${name}`;
      throw unsupportedValue(`${rule}; use custom`, memberPath(path, "type"));
    }
    return customTool(value, path, limits);
  },
  () => schemaOf(customTool),
);

/** A choice of tools, and whether the model may call several at once. */
interface Choice {
  readonly choice: ToolChoice;
  readonly parallel: boolean | undefined;
}

const choiceFields = { disable_parallel_tool_use: optional(flag) };

const toolChoice: Reader<Choice> = variants("type", {
  auto: choiceOf("auto", "auto"),
  any: choiceOf("any", "required"),
  none: choiceOf("none", "none"),
  tool: mapped(
    object({ type: required(oneOf("tool")), name: required(identifier), ...choiceFields }),
    ({ name, disable_parallel_tool_use }) => ({
      choice: { name },
      parallel: parallel(disable_parallel_tool_use),
    }),
  ),
});

function choiceOf(type: string, choice: ToolChoice): Reader<Choice> {
  return mapped(
    object({ type: required(oneOf(type)), ...choiceFields }),
    ({ disable_parallel_tool_use }) => ({ choice, parallel: parallel(disable_parallel_tool_use) }),
  );
}

function parallel(isDisabled: boolean | undefined): boolean | undefined {
  return isDisabled === undefined ? undefined : !isDisabled;
}

const display = { display: optional(oneOf("summarized", "omitted", "updates")) };

const thinking: Reader<Thinking> = variants("type", {
  enabled: object({
    type: required(oneOf("enabled")),
    budget_tokens: renamed("budgetTokens", required(integer(1))),
    ...display,
  }),
  adaptive: object({ type: required(oneOf("adaptive")), ...display }),
  between_tools: object({ type: required(oneOf("between_tools")) }),
  disabled: object({ type: required(oneOf("disabled")) }),
});

/** The API gives its schemas no name, but other providers want one. */
const format: Reader<ResponseFormat> = mapped(
  object({ type: required(oneOf("json_schema")), schema: required(jsonSchema) }),
  ({ type, schema }) => ({ type, name: "answer", schema }),
);

const outputConfig = object({ effort: optional(identifier), format: optional(format) });

const messages: Reader<readonly (readonly Message[])[]> = messagesOf(
  message,
  ({ known }) => known.groups,
);

const serviceTier: Reader<string | undefined> = mapped(oneOf("auto", "standard_only"), (tier) =>
  tier === "auto" ? undefined : "default",
);

const maxUserId = 512;

/** The body of `POST /v1/messages`, by its fields. */
export const messagesRequest = object({
  model: required(text),
  messages: required(messages),
  max_tokens: renamed("maxOutputTokens", required(integer(1))),
  system: optional(textBlocks),
  stream: optional(flag),
  ...sessionFields,

  tools: optional(listOf(tool, { max: (limits) => limits.tools })),
  tool_choice: renamed("toolChoice", optional(toolChoice)),
  thinking: optional(thinking),
  output_config: renamed("outputConfig", optional(outputConfig)),
  output_format: renamed("outputFormat", optional(format)),

  temperature: optional(number(0, 1)),
  top_p: renamed("topP", optional(number(0, 1))),
  top_k: renamed("topK", optional(integer(0))),
  stop_sequences: renamed("stop", optional(listOf(text, { max: () => 64 }))),

  metadata: optional(object({ user_id: optional(shortText(maxUserId)) }, "dropped")),
  service_tier: renamed("serviceTier", optional(serviceTier)),
  cache_control: renamed("cacheControl", optional(stateObject)),
  context_management: renamed("contextManagement", optional(stateObject)),
  // Fast mode is another model at another price.
  speed: ignored(only(identifier, "standard")),
  diagnostics: ignored(anyObject),

  container: unsupported(),
  mcp_servers: unsupported(),
  inference_geo: unsupported(),
  user_profile_id: unsupported(),
  workspace_id: unsupported(),
  thread: unsupported(),
});
