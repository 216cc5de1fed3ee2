import type { Json } from "../../kernel/stable-json.ts";
import type { LogProb, UrlCitation } from "./text-details.ts";

/** Where a provider's cache may end. */
interface Breakpoints {
  readonly cache_control?: Json;
  readonly prompt_cache_breakpoint?: Json;
}

/** Text of a user, or of the application. */
export interface InputTextPart extends Breakpoints {
  readonly type: "input_text";
  readonly text: string;
}

/** Text of the model. Its lists are part of the shape; they are empty in history that a client sends. */
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

/** An image by URL or data URL; `detail` is `auto` where the client asked for nothing in particular. */
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
  /** The group of functions that `name` is from; absent for a function of its own. */
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

/** An item with content of its own. */
export type ContentItem = MessageItem | FunctionCallItem | FunctionCallOutputItem | ReasoningItem;

/** One input item (section 2.6), normalised: strings are parts, and ids that clients send are gone. */
export type InputItem = ContentItem | ItemReference;

export type ItemStatus = "in_progress" | "completed" | "incomplete";

type Stored<Item> = Item & { readonly id: string; readonly status: ItemStatus };

/** An item as responses show it, with the id the gateway gave it. */
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
