import {
  type AssistantMessage,
  createArgumentsReader,
  type ImagePart,
  imagesAfterTools,
  type Message,
  type RefusalPart,
  type TextPart,
  type TextToolMessage,
  type ToolCall,
  type ToolMessage,
} from "@tollgate/core/provider";
import { rejected } from "./failures.ts";
import {
  breakpointOptions,
  metadataOptions,
  optionsOf,
  type PartOptions,
  type ReasoningBlock,
  reasoningBlocks,
} from "./provider-state.ts";

interface Text extends PartOptions {
  type: "text";
  text: string;
}

interface Reasoning extends PartOptions {
  type: "reasoning";
  text: string;
}

interface Call extends PartOptions {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
  input: unknown;
}

interface Result extends PartOptions {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output: { type: "text"; value: string };
}

/** A message of the AI SDK. Its two versions differ only in their file parts. */
export type PromptMessage<File> = PartOptions &
  (
    | { role: "system"; content: string }
    | { role: "user"; content: (Text | File)[] }
    | { role: "assistant"; content: (Text | Reasoning | Call)[] }
    | { role: "tool"; content: Result[] }
  );

/** An image as a URL or in base64. */
export interface Image {
  readonly mediaType: string;
  readonly data: URL | string;
}

/** The AI SDK's names for vendors that take instructions only before the conversation. It rejects later ones. */
const takesOnlyLeading = /^(?:google|amazon-bedrock)(?:\.|$)/;

/** The messages in the order that a vendor accepts. `provider` is the AI SDK's name for it. */
export function orderFor(provider: string, messages: readonly Message[]): readonly Message[] {
  if (!takesOnlyLeading.test(provider)) return messages;
  const isInstruction = ({ role }: Message): boolean => role === "system" || role === "developer";
  const rest = messages.filter((message) => !isInstruction(message));
  return [...messages.filter(isInstruction), ...rest];
}

/** Converts a conversation to the AI SDK's format. Consecutive tool results become one message. */
export function promptOf<File>(
  messages: readonly Message[],
  fileOf: (image: Image) => File,
): PromptMessage<File>[] {
  const names = new Map<string, string>();
  const readArguments = createArgumentsReader();
  const prompt: PromptMessage<File>[] = [];
  for (const message of imagesAfterTools(messages)) {
    if (message.role === "tool") {
      const result = resultOf(message, names);
      const last = prompt.at(-1);
      if (last?.role === "tool") last.content.push(result);
      else prompt.push({ role: "tool", content: [result] });
      continue;
    }
    if (message.role === "assistant")
      for (const call of message.tool_calls ?? []) names.set(call.id, call.function.name);
    prompt.push(messageOf(message, { fileOf, readArguments }));
  }
  return prompt;
}

type ReadArguments = ReturnType<typeof createArgumentsReader>;

function messageOf<File>(
  message: Exclude<Message, ToolMessage>,
  {
    fileOf,
    readArguments,
  }: { readonly fileOf: (image: Image) => File; readonly readArguments: ReadArguments },
): PromptMessage<File> {
  const options = breakpointOptions(message.state);
  if (message.role === "assistant")
    return { role: "assistant", content: answered(message, readArguments), ...options };
  if (message.role !== "user")
    return { role: "system", content: joined(message.content), ...options };
  const shown = (part: TextPart | ImagePart): Text | File =>
    part.type === "text" ? textOf(part) : { ...fileOf(imageOf(part)), ...optionsOf(part.state) };
  return { role: "user", content: partsOf(message.content).map(shown), ...options };
}

function answered(
  message: AssistantMessage,
  readArguments: ReadArguments,
): (Text | Reasoning | Call)[] {
  const { content, refusal, tool_calls = [], state } = message;
  const texts = [
    ...partsOf(content ?? []).map(textOf),
    ...partsOf<TextPart>(refusal ?? []).map(textOf),
  ];
  return [
    ...reasoningBlocks(message).map(reasoningOf),
    ...withOptions(texts, metadataOptions(state)),
    ...tool_calls.map((call) => callOf(call, readArguments)),
  ];
}

function reasoningOf({ text, metadata }: ReasoningBlock): Reasoning {
  return { type: "reasoning", text, ...(metadata && { providerOptions: metadata }) };
}

/** Attaches the options of the message's text to its last part, or to an empty part if it has none. */
function withOptions(texts: readonly Text[], options: PartOptions): readonly Text[] {
  if (options.providerOptions === undefined) return texts;
  const last = texts.at(-1) ?? { type: "text", text: "" };
  return [...texts.slice(0, -1), { ...last, ...options }];
}

/**
 * Models expect their arguments as a value. Text that isn't read goes into an object: as the value itself, the AI SDK would
 * parse it, whatever its size and depth.
 */
function callOf(
  { id, function: { name, arguments: text }, state }: ToolCall,
  readArguments: ReadArguments,
): Call {
  const value = text === "" ? {} : readArguments(text);
  const input = value === undefined ? { arguments: text } : value;
  return { type: "tool-call", toolCallId: id, toolName: name, input, ...optionsOf(state) };
}

function resultOf(
  { tool_call_id, content, state }: TextToolMessage,
  names: ReadonlyMap<string, string>,
): Result {
  const toolName = names.get(tool_call_id);
  if (toolName === undefined)
    throw rejected("A tool message has no matching tool call before it.", {
      param: "messages",
    });
  const output = { type: "text" as const, value: joined(content) };
  const options = optionsOf(state);
  return { type: "tool-result", toolCallId: tool_call_id, toolName, output, ...options };
}

/** The gateway doesn't fetch images. If the model can't either, it rejects the request. */
function imageOf({ image_url: { url } }: ImagePart): Image {
  const [, mediaType, data] = /^data:(image\/[a-z0-9.+-]+);base64,(.*)$/is.exec(url) ?? [];
  if (mediaType !== undefined && data !== undefined) return { mediaType, data };
  if (!/^https?:/i.test(url) || !URL.canParse(url))
    throw rejected("An image must be an http URL or a data URL in base64.", { param: "messages" });
  return { mediaType: "image/*", data: new URL(url) };
}

function textOf(part: TextPart | RefusalPart): Text {
  if (part.type === "refusal") return { type: "text", text: part.refusal };
  return { type: "text", text: part.text, ...optionsOf(part.state) };
}

function joined(content: string | readonly TextPart[]): string {
  return partsOf(content)
    .map(({ text }) => text)
    .join("");
}

/** Returns content as a list of parts. An empty text has no parts. */
function partsOf<Part>(content: string | readonly Part[]): readonly (Part | TextPart)[] {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}
