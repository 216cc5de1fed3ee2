import type {
  AssistantMessage,
  ImagePart,
  Message,
  ProviderState,
  TextPart,
  ToolCall,
  ToolMessage,
} from "../../domain/message.ts";
import type { Json } from "../../kernel/stable-json.ts";
import { anyObject, ignored, object, optional, required, variants } from "../fields.ts";
import { imageUrl } from "../image-url.ts";
import { listOf, textOr } from "../lists.ts";
import { breakpoints, requireSmallState, stateBytes } from "../provider-state.ts";
import { mapped, memberPath, type Reader, schemaOf, withSchema } from "../read.ts";
import { callLabel, content, flag, oneOf } from "../scalars.ts";

const breakpoint = { cache_control: breakpoints.cache_control };

const text = object(
  { type: required(oneOf("text")), text: required(content), ...breakpoint },
  "dropped",
);

const base64Fields = object({
  type: required(oneOf("base64")),
  media_type: required(oneOf("image/jpeg", "image/png", "image/gif", "image/webp")),
  data: required(content),
});

const base64Source: Reader<string> = withSchema(
  (value, path, limits) => {
    const { media_type, data } = base64Fields(value, path, limits);
    return imageUrl(`data:${media_type};base64,${data}`, memberPath(path, "data"), limits);
  },
  () => schemaOf(base64Fields),
);

const urlSource: Reader<string> = mapped(
  object({ type: required(oneOf("url")), url: required(imageUrl) }),
  ({ url }) => url,
);

const image: Reader<ImagePart> = mapped(
  object(
    {
      type: required(oneOf("image")),
      source: required(variants("type", { base64: base64Source, url: urlSource })),
      ...breakpoint,
    },
    "dropped",
  ),
  ({ source, state }) => ({
    type: "image_url",
    image_url: { url: source },
    ...(state === undefined ? {} : { state }),
  }),
);

const toolResult: Reader<ToolMessage> = mapped(
  object(
    {
      type: required(oneOf("tool_result")),
      tool_use_id: required(callLabel),
      content: optional(textOr(content, listOf(variants("type", { text, image })))),
      is_error: optional(flag),
      ...breakpoint,
    },
    "dropped",
  ),
  ({ tool_use_id, content: returned = "", is_error = false, state }) => ({
    role: "tool",
    tool_call_id: tool_use_id,
    content: plain(returned),
    ...(is_error ? { is_error } : {}),
    ...(state === undefined ? {} : { state }),
  }),
);

const toolUse: Reader<{ readonly type: "tool_use"; readonly call: ToolCall }> = mapped(
  object(
    {
      type: required(oneOf("tool_use")),
      id: required(callLabel),
      name: required(callLabel),
      input: required(anyObject),
      caller: ignored(),
      ...breakpoint,
    },
    "dropped",
  ),
  ({ type, id, name, input, state }) => ({
    type,
    call: {
      id,
      type: "function",
      function: { name, arguments: JSON.stringify(input) },
      ...(state === undefined ? {} : { state }),
    },
  }),
);

const thinking = object(
  {
    type: required(oneOf("thinking")),
    thinking: required(content),
    signature: optional(content),
  },
  "dropped",
);

const redactedThinking = object(
  { type: required(oneOf("redacted_thinking")), data: required(content) },
  "dropped",
);

/** Blocks of text: the system prompt, or a system message within the conversation. */
export const textBlocks: Reader<string | readonly TextPart[]> = mapped(
  textOr(content, listOf(variants("type", { text }))),
  plain,
);

const userBlocks = textOr(
  content,
  listOf(variants("type", { text, image, tool_result: toolResult }), { min: 1 }),
);
const assistantBlocks = textOr(
  content,
  listOf(
    variants("type", { text, tool_use: toolUse, thinking, redacted_thinking: redactedThinking }),
  ),
);

type UserBlocks = ReturnType<typeof userBlocks>;
type AssistantBlocks = ReturnType<typeof assistantBlocks>;

const user: Reader<readonly Message[]> = mapped(
  object({ role: required(oneOf("user")), content: required(userBlocks) }, "dropped"),
  ({ content: said }) => asked(said),
);

const assistant: Reader<readonly Message[]> = mapped(
  object({ role: required(oneOf("assistant")), content: required(assistantBlocks) }, "dropped"),
  ({ content: said }) => [answered(said)],
);

const system: Reader<readonly Message[]> = mapped(
  object({ role: required(oneOf("system")), content: required(textBlocks) }, "dropped"),
  (message) => [message],
);

const byRole: Reader<readonly Message[]> = variants("role", { user, assistant, system });

/** One message of the request: tool results in it become separate messages. */
export const message: Reader<readonly Message[]> = withSchema(
  (value, path, limits) => {
    const read = byRole(value, path, limits);
    for (const one of read) if (one.role === "assistant") requireSmallState(statesOf(one), path);
    return read;
  },
  () => schemaOf(byRole),
);

function statesOf({ state, tool_calls = [] }: AssistantMessage): number {
  return [state, ...tool_calls.map((call) => call.state)].reduce(
    (bytes, held) => bytes + stateBytes(held?.fields),
    0,
  );
}

/** A single text without state is written as plain text, which every provider accepts. */
function plain<Part extends TextPart | ImagePart>(
  given: string | readonly Part[],
): string | readonly Part[] {
  if (typeof given === "string") return given;
  const [only, ...others] = given;
  if (only === undefined) return "";
  return only.type === "text" && others.length === 0 && only.state === undefined
    ? only.text
    : given;
}

/** Text next to tool results, such as a client's reminders, continues their Turn. */
function asked(said: UserBlocks): readonly Message[] {
  if (typeof said === "string") return [{ role: "user", content: said }];
  const messages: Message[] = [];
  let parts: (TextPart | ImagePart)[] = [];
  let hasResults = false;
  const close = (): void => {
    if (parts.length > 0)
      messages.push({
        role: "user",
        content: plain(parts),
        ...(hasResults ? { sameTurn: true } : {}),
      });
    parts = [];
  };
  for (const block of said) {
    if (!("role" in block)) parts.push(block);
    else {
      close();
      hasResults = true;
      messages.push(block);
    }
  }
  close();
  return messages;
}

function answered(said: AssistantBlocks): AssistantMessage {
  if (typeof said === "string") return { role: "assistant", content: said };
  const texts: TextPart[] = [];
  const calls: ToolCall[] = [];
  const blocks: Json[] = [];
  let unsigned = "";
  for (const block of said) {
    const index = texts.length + calls.length + blocks.length;
    if (block.type === "text") texts.push(block);
    else if (block.type === "tool_use") calls.push(block.call);
    else if (block.type === "redacted_thinking") blocks.push({ ...block, index });
    else if (block.signature) blocks.push({ ...block, index });
    else unsigned += block.thinking;
  }
  const content = calls.length > 0 && texts.length === 0 ? null : plain(texts);
  return {
    role: "assistant",
    content,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...thoughts(blocks, unsigned),
  };
}

/** Thinking without a signature is the reasoning of a model that doesn't sign it. */
function thoughts(blocks: readonly Json[], unsigned: string): { readonly state?: ProviderState } {
  const fields = {
    ...(blocks.length === 0 ? {} : { thinking_blocks: blocks }),
    ...(unsigned === "" ? {} : { reasoning_content: unsigned }),
  };
  return Object.keys(fields).length === 0 ? {} : { state: { from: null, fields } };
}
