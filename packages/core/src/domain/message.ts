import type { Json } from "../kernel/stable-json.ts";

/**
 * State that belongs to a provider, such as reasoning, signatures and cache breakpoints. It is kept with the message, part,
 * tool call or tool it came with, isn't part of the canonical message, and goes back only to the provider it came from.
 */
export interface ProviderState {
  /** The `<gateway>/<vendor>` that issued it. Null if the client added it, as with a cache breakpoint. */
  readonly from: string | null;
  /** The fields, with the provider's own names, such as `reasoning_content` or `extra_content`. */
  readonly fields: Readonly<Record<string, Json>>;
  /** Size of the state in UTF-8 bytes of JSON, if it was too large to be recorded. Then `fields` is empty. */
  readonly omittedBytes?: number;
}

/** Text inside a message. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly state?: ProviderState;
}

/** A refusal inside an assistant message. */
export interface RefusalPart {
  readonly type: "refusal";
  readonly refusal: string;
  readonly state?: ProviderState;
}

/** An image by URL or data URL; the gateway never fetches it. */
export interface ImagePart {
  readonly type: "image_url";
  readonly image_url: { readonly url: string; readonly detail?: string };
  readonly state?: ProviderState;
}

/** The longest id and name of a tool call. Some upstreams put a signature of thousands of characters into the id. */
export const maxCallLabelLength = 65_536;

/** One call of a function tool; `arguments` is the JSON text as the model wrote it. */
export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
  readonly state?: ProviderState;
}

/** Instructions from the application. Protocols have two names for the role. */
export interface SystemMessage {
  readonly role: "system" | "developer";
  readonly content: string | readonly TextPart[];
  readonly name?: string;
  readonly state?: ProviderState;
}

/** A user message. A new one starts a new Turn. */
export interface UserMessage {
  readonly role: "user";
  readonly content: string | readonly (TextPart | ImagePart)[];
  readonly name?: string;
  /** It came in one message with tool results, as a client's reminders do, so it continues their Turn. */
  readonly sameTurn?: true;
  readonly state?: ProviderState;
}

/** A model's answer. If it calls tools, an empty, null or absent `content` makes no difference. */
export interface AssistantMessage {
  readonly role: "assistant";
  readonly content?: string | readonly (TextPart | RefusalPart)[] | null;
  readonly refusal?: string | null;
  readonly name?: string;
  readonly tool_calls?: readonly ToolCall[];
  readonly state?: ProviderState;
}

/** The result of one call of a function tool. */
export interface ToolMessage {
  readonly role: "tool";
  readonly tool_call_id: string;
  readonly content: string | readonly (TextPart | ImagePart)[];
  /** The tool failed, and the content says why. Only some protocols have a place for it. */
  readonly is_error?: true;
  readonly state?: ProviderState;
}

/** One message of a conversation, in the shape of the Chat Completions API. Every protocol is translated to it. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** A tool message with text only, which every provider accepts. */
export interface TextToolMessage extends Omit<ToolMessage, "content"> {
  readonly content: string | readonly TextPart[];
}

/** Whether a message starts a Turn. */
export function startsTurn(message: Message): boolean {
  return message.role === "user" && message.sameTurn !== true;
}

/** Replaces the content of a tool message that had only images. */
const imagesFollow = "The images that the function returned follow.";

/**
 * Moves the images of tool messages into a user message after them. Few providers accept an image in a tool message, and
 * none accepts anything between the tool messages of one call.
 */
export function imagesAfterTools(
  messages: readonly Message[],
): readonly (Exclude<Message, ToolMessage> | TextToolMessage)[] {
  if (messages.every(isWithoutToolParts)) return messages;
  const moved: (Exclude<Message, ToolMessage> | TextToolMessage)[] = [];
  let images: ImagePart[] = [];
  const close = (): void => {
    if (images.length > 0) moved.push({ role: "user", content: images });
    images = [];
  };
  for (const message of messages) {
    if (message.role !== "tool") {
      close();
      moved.push(message);
      continue;
    }
    const { content, ...rest } = message;
    if (typeof content === "string") {
      moved.push({ ...rest, content });
      continue;
    }
    const texts = content.filter((part) => part.type === "text");
    images.push(...content.filter((part) => part.type === "image_url"));
    moved.push({ ...rest, content: texts.length === 0 ? imagesFollow : texts });
  }
  close();
  return moved;
}

function isWithoutToolParts(
  message: Message,
): message is Exclude<Message, ToolMessage> | TextToolMessage {
  return message.role !== "tool" || typeof message.content === "string";
}
