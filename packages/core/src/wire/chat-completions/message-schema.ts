import type {
  AssistantMessage,
  Message,
  ProviderState,
  RefusalPart,
  TextPart,
} from "../../domain/message.ts";
import type { Json } from "../../kernel/stable-json.ts";
import { carried, object, optional, required, variants } from "../fields.ts";
import { imageUrl } from "../image-url.ts";
import { listOf, textOr } from "../lists.ts";
import {
  breakpoints,
  callStateReaders,
  requireSmallState,
  stateBytes,
  thoughtReaders,
  unsupportedContent,
} from "../provider-state.ts";
import { mapped, type Reader, schemaOf, withSchema } from "../read.ts";
import { callLabel, content, identifier, oneOf } from "../scalars.ts";

const thoughts = {
  reasoning_content: carried(thoughtReaders.reasoning_content),
  reasoning: carried(thoughtReaders.reasoning),
  reasoning_details: carried(thoughtReaders.reasoning_details),
  thinking_blocks: carried(thoughtReaders.thinking_blocks),
  provider_specific_fields: carried(thoughtReaders.provider_specific_fields),
};

const textFields = { type: required(oneOf("text")), text: required(content) };
const textPart = object({ ...textFields, ...breakpoints, ...unsupportedContent }, "dropped");

const imagePart = object(
  {
    type: required(oneOf("image_url")),
    image_url: required(
      object(
        { url: required(imageUrl), detail: optional(identifier), ...unsupportedContent },
        "dropped",
      ),
    ),
    ...breakpoints,
    ...unsupportedContent,
  },
  "dropped",
);

/** Some clients put a whole earlier message into its text part. Reasoning in it belongs to the message. */
const spokenPart = object(
  { ...textFields, ...breakpoints, ...thoughts, ...unsupportedContent },
  "dropped",
);
const refusalPart = object(
  {
    type: required(oneOf("refusal")),
    refusal: required(content),
    ...thoughts,
    ...unsupportedContent,
  },
  "dropped",
);

const textParts = listOf(variants("type", { text: textPart }), { min: 1 });
const userParts = listOf(variants("type", { text: textPart, image_url: imagePart }), { min: 1 });
const assistantParts = listOf(variants("type", { text: spokenPart, refusal: refusalPart }));

const systemMessage = object(
  {
    role: required(oneOf("system", "developer")),
    content: required(textOr(content, textParts)),
    name: optional(identifier),
    ...breakpoints,
    ...unsupportedContent,
  },
  "dropped",
);

const userMessage = object(
  {
    role: required(oneOf("user")),
    content: required(textOr(content, userParts)),
    name: optional(identifier),
    ...breakpoints,
    ...unsupportedContent,
  },
  "dropped",
);

const toolCall = object(
  {
    id: required(callLabel),
    type: required(oneOf("function")),
    function: required(
      object({ name: required(callLabel), arguments: required(content) }, "dropped"),
    ),
    extra_content: carried(callStateReaders.extra_content),
    provider_specific_fields: carried(callStateReaders.provider_specific_fields),
    ...unsupportedContent,
  },
  "dropped",
);

const assistantMessage: Reader<AssistantMessage> = mapped(
  object(
    {
      role: required(oneOf("assistant")),
      content: optional(unlessEmpty(textOr(content, assistantParts))),
      refusal: optional(content),
      name: optional(identifier),
      tool_calls: optional(
        unlessEmpty(
          listOf(variants("type", { function: toolCall }), { max: (limits) => limits.tools }),
        ),
      ),
      ...breakpoints,
      ...thoughts,
      // Gemini puts its signature here if the answer has no calls.
      extra_content: carried(callStateReaders.extra_content),
      ...unsupportedContent,
    },
    "dropped",
  ),
  withThoughtsOfParts,
);

/** Some agents also name the tool. That isn't needed, because `tool_call_id` identifies the call. */
const toolMessage = object(
  {
    role: required(oneOf("tool")),
    tool_call_id: required(callLabel),
    content: required(textOr(content, textParts)),
    ...breakpoints,
    ...unsupportedContent,
  },
  "dropped",
);

const byRole: Reader<Message> = variants("role", {
  developer: systemMessage,
  system: systemMessage,
  user: userMessage,
  assistant: assistantMessage,
  tool: toolMessage,
});

/**
 * One message of the conversation, by its role. Unknown members come from the history of another dialect and aren't
 * rejected: provider state is kept, everything else is dropped.
 */
export const message: Reader<Message> = withSchema(
  (value, path, limits) => {
    const read = byRole(value, path, limits);
    requireSmallState(bytesOfStates(read), path);
    return read;
  },
  () => schemaOf(byRole),
);

function bytesOfStates(message: Message): number {
  let bytes = stateBytes(message.state?.fields);
  if (typeof message.content === "object")
    for (const part of message.content ?? [])
      if (part.type !== "refusal") bytes += stateBytes(part.state?.fields);
  if (message.role === "assistant")
    for (const call of message.tool_calls ?? []) bytes += stateBytes(call.state?.fields);
  return bytes;
}

type SpokenPart = (TextPart | RefusalPart) & { readonly state?: ProviderState };

/** Moves the model's reasoning from parts to their message, unless the message has its own. */
function withThoughtsOfParts({
  content: said,
  state,
  ...message
}: Omit<AssistantMessage, "content"> & {
  readonly content?: string | readonly SpokenPart[];
}): AssistantMessage {
  const fields: Record<string, Json> = { ...state?.fields };
  const withoutThoughts = (part: SpokenPart): SpokenPart => {
    const { state: held, ...plain } = part;
    const kept: Record<string, Json> = {};
    for (const [name, value] of Object.entries(held?.fields ?? {})) {
      if (Object.hasOwn(thoughts, name)) fields[name] ??= value;
      else kept[name] = value;
    }
    return { ...plain, ...stateOf(kept) };
  };
  const content = typeof said === "object" ? said.map(withoutThoughts) : said;
  return { ...message, ...(content === undefined ? {} : { content }), ...stateOf(fields) };
}

function stateOf(fields: Readonly<Record<string, Json>>): { readonly state?: ProviderState } {
  return Object.keys(fields).length === 0 ? {} : { state: { from: null, fields } };
}

/** An empty list means the same as none. */
function unlessEmpty<Value extends string | readonly unknown[]>(
  read: Reader<Value>,
): Reader<Value | undefined> {
  return mapped(read, (value) => (Array.isArray(value) && value.length === 0 ? undefined : value));
}
