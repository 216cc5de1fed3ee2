import type { Json } from "../../kernel/stable-json.ts";
import type { LogProb, UrlCitation } from "./text-details.ts";

/** Marks where a provider's cache may end. */
interface Breakpoints {
  readonly cache_control?: Json;
  readonly prompt_cache_breakpoint?: Json;
}

/** Text of a user or of the application. */
export interface InputTextPart extends Breakpoints {
  readonly type: "input_text";
  readonly text: string;
}

/** Text of the model. Both lists are always present, but they are empty in history that a client sends. */
export interface OutputTextPart extends Breakpoints {
  readonly type: "output_text";
  readonly text: string;
  readonly annotations: readonly UrlCitation[];
  readonly logprobs: readonly LogProb[];
}

export interface OutputRefusalPart {
  readonly type: "refusal";
  readonly refusal: string;
}

/** An image by URL or data URL. `detail` is `auto` if the client gave none. */
export interface InputImagePart extends Breakpoints {
  readonly type: "input_image";
  readonly image_url: string;
  readonly detail: string;
}

export type ContentPart = InputTextPart | OutputTextPart | OutputRefusalPart | InputImagePart;

export interface MessageItem extends Breakpoints {
  readonly type: "message";
  readonly role: "user" | "assistant" | "system" | "developer";
  readonly content: readonly ContentPart[];
  readonly reasoning_content?: Json;
  readonly reasoning?: Json;
  readonly reasoning_details?: Json;
  readonly thinking_blocks?: Json;
  readonly provider_specific_fields?: Json;
}

export interface FunctionCallItem {
  readonly type: "function_call";
  readonly call_id: string;
  /** The namespace that contains the function. Absent for a function outside of namespaces. */
  readonly namespace?: string;
  readonly name: string;
  readonly arguments: string;
  readonly extra_content?: Json;
  readonly provider_specific_fields?: Json;
}

export interface FunctionCallOutputItem {
  readonly type: "function_call_output";
  readonly call_id: string;
  readonly output: string | readonly (InputTextPart | InputImagePart)[];
}

export interface ReasoningItem {
  readonly type: "reasoning";
  readonly summary: readonly { readonly type: "summary_text"; readonly text: string }[];
  readonly content?: Json;
  readonly encrypted_content?: string;
}

/** Refers to an item of a stored response, by its id. */
export interface ItemReference {
  readonly type: "item_reference";
  readonly id: string;
}

/** An item with its own content. */
export type ContentItem = MessageItem | FunctionCallItem | FunctionCallOutputItem | ReasoningItem;

/** One input item (section 2.6) in normal form: strings have become parts, and the client's ids are removed. */
export type InputItem = ContentItem | ItemReference;

export type ItemStatus = "in_progress" | "completed" | "incomplete";

type Stored<Item> = Item & { readonly id: string; readonly status: ItemStatus };

/** An item as responses show it, with its id from the gateway. */
export type StoredItem =
  | Stored<MessageItem>
  | Stored<FunctionCallItem>
  | Stored<FunctionCallOutputItem>
  | Stored<ReasoningItem>;

export const inputText = (text: string): InputTextPart => ({ type: "input_text", text });

export const outputText = (text: string): OutputTextPart => ({
  type: "output_text",
  text,
  annotations: [],
  logprobs: [],
});
