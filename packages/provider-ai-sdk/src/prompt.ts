import type {
  AssistantMessage,
  ImagePart,
  Message,
  RefusalPart,
  TextPart,
  ToolCall,
  ToolMessage,
} from "@tollgate/core/provider";
import { rejected } from "./failures.ts";

interface Text {
  type: "text";
  text: string;
}

interface Call {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
  input: unknown;
}

interface Result {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output: { type: "text"; value: string };
}

/** A message of the AI SDK, in either version: they differ in how they hold a file. */
export type PromptMessage<File> =
  | { role: "system"; content: string }
  | { role: "user"; content: (Text | File)[] }
  | { role: "assistant"; content: (Text | Call)[] }
  | { role: "tool"; content: Result[] };

/** An image that is somewhere, or is here in base64. */
export interface Image {
  readonly mediaType: string;
  readonly data: URL | string;
}

/** The conversation as the AI SDK wants it: results of tools that follow each other are one message. */
export function promptOf<File>(
  messages: readonly Message[],
  fileOf: (image: Image) => File,
): PromptMessage<File>[] {
  const names = new Map<string, string>();
  const prompt: PromptMessage<File>[] = [];
  for (const message of messages) {
    if (message.role === "tool") {
      const result = resultOf(message, names);
      const last = prompt.at(-1);
      if (last?.role === "tool") last.content.push(result);
      else prompt.push({ role: "tool", content: [result] });
      continue;
    }
    if (message.role === "assistant")
      for (const call of message.tool_calls ?? []) names.set(call.id, call.function.name);
    prompt.push(messageOf(message, fileOf));
  }
  return prompt;
}

function messageOf<File>(
  message: Exclude<Message, ToolMessage>,
  fileOf: (image: Image) => File,
): PromptMessage<File> {
  if (message.role === "assistant") return { role: "assistant", content: answered(message) };
  if (message.role !== "user") return { role: "system", content: joined(message.content) };
  const shown = (part: TextPart | ImagePart): Text | File =>
    part.type === "text" ? textOf(part) : fileOf(imageOf(part));
  return { role: "user", content: partsOf(message.content).map(shown) };
}

function answered({ content, refusal, tool_calls = [] }: AssistantMessage): (Text | Call)[] {
  return [
    ...partsOf(content ?? []).map(textOf),
    ...partsOf<TextPart>(refusal ?? []).map(textOf),
    ...tool_calls.map(callOf),
  ];
}

function callOf({ id, function: { name, arguments: input } }: ToolCall): Call {
  return { type: "tool-call", toolCallId: id, toolName: name, input: parsed(input) };
}

/** Models take their arguments back as a value; text that is no JSON is theirs to refuse. */
function parsed(text: string): unknown {
  if (text === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function resultOf(
  { tool_call_id, content }: ToolMessage,
  names: ReadonlyMap<string, string>,
): Result {
  const toolName = names.get(tool_call_id);
  if (toolName === undefined)
    throw rejected("A tool message answers a call that no message before it made.", {
      param: "messages",
    });
  const output = { type: "text" as const, value: joined(content) };
  return { type: "tool-result", toolCallId: tool_call_id, toolName, output };
}

/** The gateway fetches no image: a model that cannot fetch it either refuses it. */
function imageOf({ image_url: { url } }: ImagePart): Image {
  const [, mediaType, data] = /^data:(image\/[a-z0-9.+-]+);base64,(.*)$/is.exec(url) ?? [];
  if (mediaType !== undefined && data !== undefined) return { mediaType, data };
  if (!/^https?:/i.test(url) || !URL.canParse(url))
    throw rejected("An image is neither a URL nor a data URL in base64.", { param: "messages" });
  return { mediaType: "image/*", data: new URL(url) };
}

function textOf(part: TextPart | RefusalPart): Text {
  return { type: "text", text: part.type === "text" ? part.text : part.refusal };
}

function joined(content: string | readonly TextPart[]): string {
  return partsOf(content)
    .map(({ text }) => text)
    .join("");
}

/** Content as a list of parts; the empty text is no part. */
function partsOf<Part>(content: string | readonly Part[]): readonly (Part | TextPart)[] {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}
