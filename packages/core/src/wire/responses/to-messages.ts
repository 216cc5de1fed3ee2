import type {
  AssistantMessage,
  ImagePart,
  Message,
  RefusalPart,
  TextPart,
  ToolCall,
  ToolMessage,
} from "../../domain/message.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import {
  type CarriedReasoning,
  carriedReasoning,
  isEmptyReasoning,
  type StateFields,
  showsNothing,
  stateFields,
  withState,
} from "./item-state.ts";
import type {
  ContentPart,
  FunctionCallItem,
  FunctionCallOutputItem,
  InputImagePart,
  InputItem,
  MessageItem,
  ReasoningItem,
} from "./items.ts";
import { modelName } from "./namespaces.ts";

/** Translates items to messages. Reasoning becomes state of the answer after it, and is dropped if no answer follows. */
export function toMessages(items: readonly InputItem[]): readonly Message[] {
  const conversation = createConversation();
  for (const item of items) {
    switch (item.type) {
      case "message":
        if (item.role === "assistant")
          conversation.say(item.content.map(assistantPart), stateFields(item));
        else
          conversation.add({
            ...givenMessage(item.role, item.content),
            ...withState(stateFields(item)),
          });
        break;
      case "function_call":
        conversation.call(toolCall(item));
        break;
      case "function_call_output":
        conversation.add(toolMessage(item));
        break;
      case "reasoning":
        conversation.think(item);
        break;
      case "item_reference":
        throw new GatewayError("internal_error", "An item reference has no message.");
    }
  }
  return conversation.end();
}

/** An assistant message that items are still added to. */
interface AssistantDraft {
  readonly said: (TextPart | RefusalPart)[];
  readonly calls: ToolCall[];
  readonly reasoning: CarriedReasoning[];
  state: StateFields;
}

interface Conversation {
  think(item: ReasoningItem): void;
  say(parts: readonly (TextPart | RefusalPart)[], state: StateFields): void;
  call(call: ToolCall): void;
  add(message: Message): void;
  end(): readonly Message[];
}

/**
 * Consecutive calls and the text right before them form one message. Text after a call also belongs to it until the call's
 * output arrives, because models accept a tool message only right after the message with its call.
 */
function createConversation(): Conversation {
  const messages: Message[] = [];
  let draft: AssistantDraft | null = null;
  let thought: CarriedReasoning[] = [];

  function close(): void {
    if (draft !== null) messages.push(assistantMessage(draft));
    draft = null;
  }
  function open(): AssistantDraft {
    draft ??= { said: [], calls: [], reasoning: [], state: {} };
    draft.reasoning.push(...thought);
    thought = [];
    return draft;
  }
  /** Ends an answer. Reasoning items without text before this point carry its sealed state, so they join it. */
  function end(): void {
    draft?.reasoning.push(...thought.filter(showsNothing));
    thought = [];
    close();
  }

  return {
    think(item) {
      if (!isEmptyReasoning(item)) thought.push(carriedReasoning(item));
    },
    say(parts, state) {
      if (draft?.calls.length === 0) close();
      const opened = open();
      opened.said.push(...parts);
      opened.state = { ...state, ...opened.state };
    },
    call(call) {
      open().calls.push(call);
    },
    add(message) {
      end();
      messages.push(message);
    },
    end() {
      end();
      return messages;
    },
  };
}

function assistantMessage({ said, calls, reasoning, state }: AssistantDraft): AssistantMessage {
  const [only, ...others] = said;
  const isPlain = only?.type === "text" && others.length === 0 && only.state === undefined;
  const text = isPlain ? only.text : null;
  const nothing = calls.length === 0 ? "" : null;
  return {
    role: "assistant",
    content: text ?? (only === undefined ? nothing : said),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...withState(reasoning.length === 0 ? state : { ...state, reasoning_items: reasoning }),
  };
}

function toolCall(item: FunctionCallItem): ToolCall {
  const { call_id: id, arguments: written } = item;
  return {
    id,
    type: "function",
    function: { name: modelName(item), arguments: written },
    ...withState(stateFields(item)),
  };
}

function toolMessage({ call_id, output }: FunctionCallOutputItem): ToolMessage {
  const content =
    typeof output === "string"
      ? output
      : output.map((part) => (part.type === "input_image" ? imagePart(part) : textPart(part)));
  return { role: "tool", tool_call_id: call_id, content };
}

function assistantPart(part: ContentPart): TextPart | RefusalPart {
  if (part.type === "refusal") return { type: "refusal", refusal: part.refusal };
  return textPart(part);
}

function textPart(part: ContentPart): TextPart {
  const state = part.type === "refusal" ? {} : withState(stateFields(part));
  return { type: "text", text: textOf(part), ...state };
}

function givenMessage(
  role: Exclude<MessageItem["role"], "assistant">,
  content: readonly ContentPart[],
): Message {
  const [only, ...others] = content;
  if (only !== undefined && only.type !== "input_image" && others.length === 0) {
    const part = textPart(only);
    return { role, content: part.state === undefined ? part.text : [part] };
  }
  if (role !== "user") return { role, content: content.map(textPart) };
  return {
    role,
    content: content.map((part) =>
      part.type === "input_image" ? imagePart(part) : textPart(part),
    ),
  };
}

/** Omits the detail `auto`, which is the default, because not every provider knows the field. */
function imagePart(part: InputImagePart): ImagePart {
  const { image_url: url, detail } = part;
  return {
    type: "image_url",
    image_url: detail === "auto" ? { url } : { url, detail },
    ...withState(stateFields(part)),
  };
}

/** Only user messages contain images, so all parts of other messages are text. */
function textOf(part: ContentPart): string {
  switch (part.type) {
    case "input_text":
    case "output_text":
      return part.text;
    case "refusal":
      return part.refusal;
    case "input_image":
      throw new GatewayError("internal_error", "Only user messages can contain images.");
  }
}
