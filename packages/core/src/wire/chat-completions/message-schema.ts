import { ignored, object, optional, required, unsupported, variants } from "../fields.ts";
import { imageUrl } from "../image-url.ts";
import { listOf, textOr } from "../lists.ts";
import { mapped, type Read } from "../read.ts";
import { content, identifier, oneOf, text } from "../scalars.ts";

const textPart = object({ type: required(oneOf("text")), text: required(content) });

const refusalPart = object({ type: required(oneOf("refusal")), refusal: required(content) });

const imagePart = object({
  type: required(oneOf("image_url")),
  image_url: required(object({ url: required(imageUrl), detail: optional(identifier) })),
});

const textParts = listOf(variants("type", { text: textPart }), { least: 1 });
const userParts = listOf(variants("type", { text: textPart, image_url: imagePart }), { least: 1 });
const assistantParts = listOf(variants("type", { text: textPart, refusal: refusalPart }));

const systemMessage = object({
  role: required(oneOf("system", "developer")),
  content: required(textOr(content, textParts)),
  name: optional(identifier),
});

const userMessage = object({
  role: required(oneOf("user")),
  content: required(textOr(content, userParts)),
  name: optional(identifier),
});

/** Clients that collect a stream send `index` back; those that parse arguments, `parsed_arguments`. */
const toolCall = object({
  id: required(identifier),
  type: required(oneOf("function")),
  function: required(
    object({ name: required(identifier), arguments: required(text), parsed_arguments: ignored() }),
  ),
  index: ignored(),
});

/** What gateways and SDKs add to an answer comes back with the history, and has no meaning for the model. */
const assistantMessage = object({
  role: required(oneOf("assistant")),
  content: optional(unlessEmpty(textOr(content, assistantParts))),
  refusal: optional(content),
  name: optional(identifier),
  tool_calls: optional(
    unlessEmpty(
      listOf(variants("type", { function: toolCall }), { most: (limits) => limits.tools }),
    ),
  ),
  // As null they are part of every answer; with a value they would be history that the model does not get to see.
  audio: unsupported(),
  function_call: unsupported(),
  annotations: ignored(),
  parsed: ignored(),
  id: ignored(),
  reasoning: ignored(),
  reasoning_content: ignored(),
  reasoning_details: ignored(),
});

/** Agents name the tool in its result as well; `tool_call_id` already tells. */
const toolMessage = object({
  role: required(oneOf("tool")),
  tool_call_id: required(identifier),
  content: required(textOr(content, textParts)),
  name: ignored(identifier),
});

/** One message of the conversation, by its role. */
export const message = variants("role", {
  developer: systemMessage,
  system: systemMessage,
  user: userMessage,
  assistant: assistantMessage,
  tool: toolMessage,
});

/** An empty list says the same as none. */
function unlessEmpty<Value extends string | readonly unknown[]>(
  read: Read<Value>,
): Read<Value | undefined> {
  return mapped(read, (value) => (Array.isArray(value) && value.length === 0 ? undefined : value));
}
