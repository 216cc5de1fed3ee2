import type { ProviderState } from "../../domain/message.ts";
import type { Json } from "../../kernel/stable-json.ts";
import { requireSmallState, stateBytes } from "../provider-state.ts";
import type { InputItem, ReasoningItem } from "./items.ts";

const stateNames = [
  "reasoning_content",
  "reasoning",
  "reasoning_details",
  "thinking_blocks",
  "provider_specific_fields",
  "extra_content",
  "cache_control",
  "prompt_cache_breakpoint",
] as const;

export type StateFields = Readonly<Record<string, Json>>;

/** The members of an item or a part that belong to a provider. */
export function stateFields(
  carrier: Readonly<Partial<Record<(typeof stateNames)[number], Json>>>,
): StateFields {
  const fields: Record<string, Json> = {};
  for (const name of stateNames) {
    const value = carrier[name];
    if (value !== undefined) fields[name] = value;
  }
  return fields;
}

/** The `state` member of a message, part or call, without an origin. Empty if there are no fields. */
export function withState(fields: StateFields): { readonly state?: ProviderState } {
  return Object.keys(fields).length === 0 ? {} : { state: { from: null, fields } };
}

/** A reasoning item in the form that a message carries, without its id and its status. */
export type CarriedReasoning = Pick<
  ReasoningItem,
  "type" | "summary" | "content" | "encrypted_content"
>;

export function carriedReasoning({ type, summary, ...item }: ReasoningItem): CarriedReasoning {
  return {
    type,
    summary: summary.map(({ text }) => ({ type: "summary_text", text })),
    ...(item.content === undefined ? {} : { content: item.content }),
    ...(item.encrypted_content === undefined ? {} : { encrypted_content: item.encrypted_content }),
  };
}

/** Whether the item has no content. */
export function isEmptyReasoning({ summary, content, encrypted_content }: ReasoningItem): boolean {
  return summary.length === 0 && !content && !encrypted_content;
}

/** Whether the item only carries the sealed state of an answer. It comes after that answer. */
export function showsNothing({ summary, content, encrypted_content }: CarriedReasoning): boolean {
  return summary.length === 0 && content === undefined && encrypted_content !== undefined;
}

/** How many reasoning items have no answer after them. They belong to no message, so no provider gets them. */
export function countLostReasoning(items: readonly InputItem[]): number {
  let lost = 0;
  let waiting: ReasoningItem[] = [];
  let isAnswering = false;
  const end = (): void => {
    lost += waiting.filter((item) => !(isAnswering && showsNothing(item))).length;
    waiting = [];
    isAnswering = false;
  };
  for (const item of items) {
    if (item.type === "reasoning") {
      if (!isEmptyReasoning(item)) waiting.push(item);
    } else if (mayJoinAnswer(item)) {
      waiting = [];
      isAnswering = true;
    } else end();
  }
  end();
  return lost;
}

/** Refuses input if its items, from one on, would form a message with too much state. */
export function requireSmallStates(items: readonly InputItem[], path: string, from: number): void {
  let bytes = 0;
  for (const [at, item] of items.slice(from).entries()) {
    const isSpoken = joinsAnswer(item);
    bytes = (isSpoken ? bytes : 0) + bytesOfItem(item);
    requireSmallState(bytes, `${path}[${from + at}]`);
    if (!isSpoken) bytes = 0;
  }
}

/** Where the answer begins, among the first `known` items, that later ones may still join. */
export function startOfLastAnswer(items: readonly InputItem[], known: number): number {
  return items.findLastIndex((item, at) => at < known && !mayJoinAnswer(item)) + 1;
}

/** A reference is resolved later, and may be an answer. */
function mayJoinAnswer(item: InputItem): boolean {
  return joinsAnswer(item) || item.type === "item_reference";
}

/** Whether an item can be joined with its neighbors into one message. */
export function joinsAnswer(item: InputItem): boolean {
  if (item.type === "message") return item.role === "assistant";
  return item.type === "reasoning" || item.type === "function_call";
}

function bytesOfItem(item: InputItem): number {
  switch (item.type) {
    case "message":
      return item.content.reduce(
        (bytes, part) => bytes + (part.type === "refusal" ? 0 : stateBytes(stateFields(part))),
        stateBytes(stateFields(item)),
      );
    case "function_call":
      return stateBytes(stateFields(item));
    case "reasoning":
      return stateBytes(carriedReasoning(item));
    default:
      return 0;
  }
}
