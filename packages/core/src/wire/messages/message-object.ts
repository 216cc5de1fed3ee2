import type { Completion, CompletionPart } from "../../domain/completion.ts";
import type { FinishReason, Refusal } from "../../domain/completion-event.ts";
import type { StateFields } from "../../domain/provider-state.ts";
import { tierOf } from "../../domain/service-tier.ts";
import type { Usage } from "../../domain/usage.ts";
import { isList, isObject, type Json } from "../../kernel/stable-json.ts";

/** The members of a message that are known before its content. */
export interface MessageHead {
  readonly id: string;
  readonly model: string;
  readonly sessionId: string;
  readonly turnId: string;
}

/** How an answer ended, as its last members say it. */
export interface Stop {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
  readonly stop_details: (Refusal & { readonly type: "refusal" }) | null;
}

const unexplained: Refusal = { category: null, explanation: null };

/** A message with its content, as JSON text. */
export function messageBody(
  head: MessageHead,
  completion: Completion,
  usage: Usage,
  finishReason: FinishReason,
): string {
  const start = JSON.stringify(messageStart(head));
  const end = JSON.stringify({
    ...stopOf(completion, finishReason),
    usage: usageObject(usage, completion.usage.serviceTier),
    ...ids(head),
  });
  return `${start.slice(0, -1)},"content":[${contentBlocks(completion).join(",")}],${end.slice(1)}`;
}

/** The message of a stream's first event, without content. Its usage is the input, as far as it is known. */
export function emptyMessage(head: MessageHead, input: Usage): object {
  return {
    ...messageStart(head),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: usageObject(input, undefined),
    ...ids(head),
  };
}

function messageStart({ id, model }: MessageHead) {
  return { id, type: "message", role: "assistant", model };
}

function ids({ sessionId, turnId }: MessageHead) {
  return { container: null, diagnostics: null, session_id: sessionId, turn_id: turnId };
}

export function stopOf({ parts, stopText, refusal }: Completion, reason: FinishReason): Stop {
  const refused = reason === "content_filter" || parts.some(({ type }) => type === "refusal");
  return {
    stop_reason: refused ? "refusal" : stopReason(parts, reason, stopText !== undefined),
    stop_sequence: stopText ?? null,
    stop_details: refused ? { type: "refusal", ...(refusal ?? unexplained) } : null,
  };
}

/** Clients run the tools of an answer only if it stopped for them, and some providers don't say so. */
function stopReason(
  parts: readonly CompletionPart[],
  reason: FinishReason,
  isAtStopText: boolean,
): string {
  if (reason === "length") return "max_tokens";
  if (reason === "tool_calls" || parts.some(({ type }) => type === "tool-call")) return "tool_use";
  return isAtStopText ? "stop_sequence" : "end_turn";
}

/** The tokens of a message. Those read from a cache, and those written to it, aren't part of `input_tokens`. */
export function usageObject(usage: Usage, serviceTier: string | undefined): object {
  const { promptTokens, completionTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = usage;
  const { cacheWrite1hTokens: longer = 0 } = usage;
  const written = cacheWriteTokens ?? 0;
  const read = cachedTokens ?? 0;
  return {
    input_tokens: promptTokens - written - read,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    cache_creation: {
      ephemeral_5m_input_tokens: written - longer,
      ephemeral_1h_input_tokens: longer,
    },
    output_tokens: completionTokens,
    output_tokens_details:
      reasoningTokens === undefined ? null : { thinking_tokens: reasoningTokens },
    server_tool_use: null,
    service_tier: serviceTier === undefined ? null : tierName(serviceTier),
    inference_geo: null,
    speed: null,
  };
}

function tierName(served: string): string {
  const tier = tierOf(served);
  return tier === "default" ? "standard" : tier;
}

/** A block of thinking that a provider signed, in its own form. Its place counts the blocks before it. */
export interface SignedBlock {
  readonly place: number;
  readonly block:
    | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
    | { readonly type: "redacted_thinking"; readonly data: string };
}

/** The signed thinking in the state of a message, in whole blocks or in pieces. */
export function signedBlocks({
  thinking_blocks: list = null,
}: StateFields): readonly SignedBlock[] {
  return isList(list) ? list.flatMap((entry) => signedBlock(entry) ?? []) : [];
}

function signedBlock(entry: Json): SignedBlock | null {
  if (!isObject(entry)) return null;
  const { type, index, thinking, signature, data } = entry;
  const place = typeof index === "number" ? index : 0;
  if (type === "redacted_thinking" && typeof data === "string")
    return { place, block: { type, data } };
  if (type !== "thinking") return null;
  return { place, block: { type, thinking: textOf(thinking), signature: textOf(signature) } };
}

/**
 * The blocks of an answer in order, as JSON texts. Signed thinking takes its places, and replaces the reasoning that shows
 * it.
 */
function contentBlocks({ parts, fields }: Completion): readonly string[] {
  const signed = signedBlocks(fields ?? {});
  const blocks: string[] = [];
  let next = 0;
  for (const part of parts) {
    if (part.type === "reasoning" && signed.length > 0) continue;
    for (let due = signed[next]; due && due.place <= blocks.length; due = signed[++next])
      blocks.push(JSON.stringify(due.block));
    blocks.push(blockOf(part));
  }
  return [...blocks, ...signed.slice(next).map(({ block }) => JSON.stringify(block))];
}

/** The model itself makes every call, because Tollgate offers no tools that the provider runs. */
export const caller = { type: "direct" };

function blockOf(part: CompletionPart): string {
  switch (part.type) {
    case "reasoning":
      return JSON.stringify({ type: "thinking", thinking: part.text, signature: "" });
    case "tool-call": {
      const { id, function: called } = part.call;
      const named = JSON.stringify({ type: "tool_use", id, name: called.name, caller });
      return `${named.slice(0, -1)},"input":${inputText(called.arguments)}}`;
    }
    default:
      return JSON.stringify({ type: "text", text: part.text, citations: null });
  }
}

/**
 * The arguments as an object, as the model wrote them: reading a number and writing it again could change its digits. Text
 * that isn't an object, which a model wrote by mistake, becomes the member `arguments`.
 */
function inputText(text: string): string {
  if (text.trim() === "") return "{}";
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return text;
  } catch {
    // Falls through to the text itself.
  }
  return JSON.stringify({ arguments: text });
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
