import {
  anyObject,
  ignored,
  object,
  optional,
  required,
  unsupported,
  variants,
} from "../fields.ts";
import { imageUrl } from "../image-url.ts";
import { listOf, textOr } from "../lists.ts";
import {
  callStateReaders,
  stateList,
  stateObject,
  thoughtReaders,
  unsupportedContent,
} from "../provider-state.ts";
import { mapped, type Reader, schemaOf, withSchema, wrongValue } from "../read.ts";
import { callLabel, content, identifier, oneOf, text } from "../scalars.ts";
import { countLostReasoning, requireSmallStates, startOfLastAnswer } from "./item-state.ts";
import {
  type ContentPart,
  type FunctionCallItem,
  type FunctionCallOutputItem,
  type InputItem,
  type ItemReference,
  inputText,
  type MessageItem,
  outputText,
  type ReasoningItem,
} from "./items.ts";

const breakpoints = {
  cache_control: optional(stateObject),
  prompt_cache_breakpoint: optional(stateObject),
};

/** Details that responses show next to a text. Clients send them back with the history. */
const textFields = {
  text: required(content),
  annotations: ignored(),
  logprobs: ignored(),
  parsed: ignored(),
  ...breakpoints,
  ...unsupportedContent,
};

/** Clients confuse the two types of text in histories. The role tells which one it is. */
const textNames = { type: required(oneOf("input_text", "output_text")), ...textFields };
const givenText = mapped(object(textNames), ({ text, ...state }) => ({
  ...state,
  ...inputText(text),
}));
const answeredText = mapped(object(textNames), ({ text, ...state }) => ({
  ...state,
  ...outputText(text),
}));

const refusal = object({
  type: required(oneOf("refusal")),
  refusal: required(content),
  ...unsupportedContent,
});

const image = mapped(
  object({
    type: required(oneOf("input_image")),
    ...unsupportedContent,
    image_url: required(imageUrl),
    detail: optional(oneOf("auto", "low", "high", "original")),
    ...breakpoints,
  }),
  ({ detail = "auto", ...image }) => ({ ...image, detail }),
);

const texts = { input_text: givenText, output_text: givenText };
const answers = { input_text: answeredText, output_text: answeredText, refusal };

const thoughts = {
  reasoning_content: optional(thoughtReaders.reasoning_content),
  reasoning: optional(thoughtReaders.reasoning),
  reasoning_details: optional(thoughtReaders.reasoning_details),
  thinking_blocks: optional(thoughtReaders.thinking_blocks),
  provider_specific_fields: optional(thoughtReaders.provider_specific_fields),
};

/** A message of one role. Its content is a string, or parts of these kinds. */
function messageOf(
  role: MessageItem["role"],
  part: Reader<ContentPart>,
  { of, min }: { readonly of: (text: string) => ContentPart; readonly min: number },
): Reader<MessageItem> {
  const fields = object({
    type: ignored(oneOf("message")),
    role: required(oneOf(role)),
    content: required(textOr(content, listOf(part, { min }))),
    id: ignored(text),
    status: ignored(text),
    phase: ignored(text),
    annotations: ignored(),
    logprobs: ignored(),
    ...breakpoints,
    ...(role === "assistant" ? thoughts : {}),
    ...unsupportedContent,
  });
  return mapped(fields, ({ content: given, ...state }) => ({
    ...state,
    type: "message",
    role,
    content: typeof given === "string" ? [of(given)] : given,
  }));
}

const asked = { of: inputText, min: 1 };
const message: Reader<MessageItem> = variants("role", {
  user: messageOf("user", variants("type", { ...texts, input_image: image }), asked),
  assistant: messageOf("assistant", variants("type", answers), { of: outputText, min: 0 }),
  system: messageOf("system", variants("type", texts), asked),
  developer: messageOf("developer", variants("type", texts), asked),
});

const functionCall: Reader<FunctionCallItem> = object({
  type: required(oneOf("function_call")),
  call_id: required(callLabel),
  name: required(callLabel),
  arguments: required(content),
  id: ignored(text),
  status: ignored(text),
  parsed_arguments: ignored(),
  extra_content: optional(callStateReaders.extra_content),
  provider_specific_fields: optional(callStateReaders.provider_specific_fields),
  namespace: optional(identifier),
  caller: unsupported(),
  ...unsupportedContent,
});

const outputParts = listOf(
  variants("type", { input_text: givenText, output_text: givenText, input_image: image }),
  { min: 1 },
);

const anyOutput = textOr(content, outputParts);
const toolOutput: Reader<FunctionCallOutputItem["output"]> = withSchema(
  (value, path, limits) => {
    if (!Array.isArray(value) || limits.toolOutputs === "parts")
      return anyOutput(value, path, limits);
    throw wrongValue(
      'must be a string; lists of texts and images need the gateway\'s option toolOutputs: "parts"',
      path,
    );
  },
  () => schemaOf(anyOutput),
);

const functionCallOutput: Reader<FunctionCallOutputItem> = object({
  type: required(oneOf("function_call_output")),
  call_id: required(callLabel),
  output: required(toolOutput),
  id: ignored(text),
  status: ignored(text),
  name: ignored(text),
  namespace: ignored(identifier),
  caller: unsupported(),
  ...unsupportedContent,
});

const summaryText = object({ type: required(oneOf("summary_text")), text: required(content) });

/** Clients send reasoning back, because answers contain it. It is sent only to the provider it came from. */
const reasoning: Reader<ReasoningItem> = mapped(
  object({
    type: required(oneOf("reasoning")),
    summary: optional(listOf(summaryText)),
    id: ignored(text),
    status: ignored(text),
    content: optional(stateList),
    encrypted_content: optional(content),
  }),
  ({ summary = [], ...item }) => ({ ...item, summary }),
);

const itemReference: Reader<ItemReference> = mapped(
  object({ type: ignored(oneOf("item_reference")), id: required(identifier) }),
  ({ id }) => ({ type: "item_reference", id }),
);

const typedItem: Reader<InputItem> = variants("type", {
  message,
  function_call: functionCall,
  function_call_output: functionCallOutput,
  reasoning,
  item_reference: itemReference,
});

/** An item without a type is a message if it has a role, and a reference if it has only an id. */
const inputItem: Reader<InputItem> = withSchema(
  (value, path, limits) => {
    const { type = null, role = null, id = null } = anyObject(value, path, limits);
    if (type === null && role !== null) return message(value, path, limits);
    if (type === null && id !== null) return itemReference(value, path, limits);
    return typedItem(value, path, limits);
  },
  () => ({ anyOf: [message, itemReference, typedItem].map(schemaOf) }),
);

const listed = listOf(inputItem, {
  max: (limits) => limits.messages,
  known: ({ known }) => known.items,
});
const list: Reader<readonly InputItem[]> = withSchema(
  (value, path, reading) => {
    const read = listed(value, path, reading);
    const known = reading.known.items?.length ?? 0;
    const from = startOfLastAnswer(read, known);
    requireSmallStates(read, path, from);
    const lost = countLostReasoning(read.slice(from)) - countLostReasoning(read.slice(from, known));
    for (let noted = 0; noted < lost; noted++) reading.noteDropped("reasoning");
    reading.conversationRead();
    return read;
  },
  () => schemaOf(listed),
);

const items = textOr(content, list);

/** The input of a request. A string counts as one user message. */
export const input: Reader<readonly InputItem[]> = mapped(items, (given) =>
  typeof given === "string"
    ? [{ type: "message", role: "user", content: [inputText(given)] }]
    : given,
);
