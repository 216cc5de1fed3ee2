import type { ImagePart, Message, TextPart, ToolMessage } from "./message.ts";

/** A tool message of text alone, which every provider takes. */
export interface TextToolMessage extends Omit<ToolMessage, "content"> {
  readonly content: string | readonly TextPart[];
}

/** Stands where a tool returned nothing but images. */
const imagesFollow = "The images that the function returned follow.";

/**
 * The conversation with the images of tool messages in a user message after them: few providers take an image in a tool
 * message, and none takes anything between a call's tool messages.
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
