import type {
  AssistantMessage,
  ImagePart,
  Message,
  RefusalPart,
  TextPart,
  ToolCall,
} from "../../domain/message.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type {
  ContentPart,
  FunctionCallItem,
  InputImagePart,
  InputItem,
  MessageItem,
} from "./items.ts";

/** Items as the conversation they stand for. Reasoning is left out: the model is not shown it again. */
export function toMessages(items: readonly InputItem[]): readonly Message[] {
  const conversation = createConversation();
  for (const item of items) {
    switch (item.type) {
      case "message":
        if (item.role === "assistant") conversation.say(item.content.map(assistantPart));
        else conversation.add(givenMessage(item.role, item.content));
        break;
      case "function_call":
        conversation.call(toolCall(item));
        break;
      case "function_call_output":
        conversation.add({ role: "tool", tool_call_id: item.call_id, content: item.output });
        break;
      case "item_reference":
        throw new GatewayError("internal_error", "An item reference stands for no message.");
    }
  }
  return conversation.end();
}

/** An assistant message while items join it. */
interface AssistantDraft {
  readonly said: (TextPart | RefusalPart)[];
  readonly calls: ToolCall[];
}

interface Conversation {
  say(parts: readonly (TextPart | RefusalPart)[]): void;
  call(call: ToolCall): void;
  add(message: Message): void;
  end(): readonly Message[];
}

/**
 * Calls in a row, and the words right before them, are one message. So are words after a call whose output has not
 * come: models take a tool message only after the one message that has its call.
 */
function createConversation(): Conversation {
  const messages: Message[] = [];
  let draft: AssistantDraft | null = null;

  function close(): void {
    if (draft !== null) messages.push(assistantMessage(draft));
    draft = null;
  }
  function open(): AssistantDraft {
    draft ??= { said: [], calls: [] };
    return draft;
  }

  return {
    say(parts) {
      if (draft?.calls.length === 0) close();
      open().said.push(...parts);
    },
    call(call) {
      open().calls.push(call);
    },
    add(message) {
      close();
      messages.push(message);
    },
    end() {
      close();
      return messages;
    },
  };
}

function assistantMessage({ said, calls }: AssistantDraft): AssistantMessage {
  const [only, ...others] = said;
  const text = only?.type === "text" && others.length === 0 ? only.text : null;
  const nothing = calls.length === 0 ? "" : null;
  return {
    role: "assistant",
    content: text ?? (only === undefined ? nothing : said),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function toolCall(item: FunctionCallItem): ToolCall {
  const { call_id: id, name, arguments: written } = item;
  return { id, type: "function", function: { name, arguments: written } };
}

function assistantPart(part: ContentPart): TextPart | RefusalPart {
  if (part.type === "refusal") return { type: "refusal", refusal: part.refusal };
  return { type: "text", text: textOf(part) };
}

function givenMessage(
  role: Exclude<MessageItem["role"], "assistant">,
  content: readonly ContentPart[],
): Message {
  const [only, ...others] = content;
  const isPlain = only?.type !== "input_image" && only !== undefined && others.length === 0;
  if (isPlain) return { role, content: textOf(only) };
  if (role !== "user")
    return { role, content: content.map((part) => ({ type: "text", text: textOf(part) })) };
  return {
    role,
    content: content.map((part) =>
      part.type === "input_image" ? imagePart(part) : { type: "text", text: textOf(part) },
    ),
  };
}

/** `auto` asks for nothing in particular, and not every provider knows the field. */
function imagePart({ image_url: url, detail }: InputImagePart): ImagePart {
  return { type: "image_url", image_url: detail === "auto" ? { url } : { url, detail } };
}

/** Only users send images, so the parts of other messages are all text. */
function textOf(part: ContentPart): string {
  switch (part.type) {
    case "input_text":
    case "output_text":
      return part.text;
    case "refusal":
      return part.refusal;
    case "input_image":
      throw new GatewayError("internal_error", "Only the message of a user holds images.");
  }
}
