import {
  type CompletionEvent,
  type FinishReason,
  fittingDetails,
  isShallow,
  type Json,
  type Refusal,
  type UsageDetails,
  type UsageReport,
} from "@tollgate/core/provider";
import {
  type AnswerReader,
  type AnswerReaderOptions,
  errorEvent,
  errorIn,
  exactJson,
  type FrameText,
  invalidAnswer,
  invalidEvent,
  isList,
  isObject,
  itemsOf,
  type JsonObject,
  labelOf,
  membersOf,
  textOf,
  tierIn,
  tokenCount,
} from "@tollgate/provider-http";
import { errorFormat } from "./upstream-errors.ts";

export const frameText: FrameText = {
  // The text of thinking is also state, so its frames are parsed.
  memberOf: ({ type }) => (type === "text-delta" ? "text" : undefined),
  textIn(chunk, member) {
    const { type, delta } = membersOf(chunk);
    const { type: kind, [member]: text } = membersOf(delta);
    return type === "content_block_delta" && kind === "text_delta" ? text : undefined;
  },
};

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
]);

/** A block of the answer that has begun. `index` is that of the domain: of a tool call, or the place of a thought. */
type Block =
  | { readonly kind: "text" }
  | { readonly kind: "thinking"; readonly index: number; signature: string }
  | {
      readonly kind: "tool";
      readonly index: number;
      readonly input: Json | undefined;
      /** The input with all digits of its numbers, if it would lose some. */
      readonly exact: Json | undefined;
      hasInput: boolean;
    }
  /** Of a kind that Tollgate doesn't ask for. */
  | { readonly kind: "other" };

// Every block has a map entry while it is open, and an upstream could open them without end.
const maxBlocks = 4_096;
// A client couldn't send back more.
const maxSignatureLength = 2_621_440;
// No tool takes deeper values, and serializing them would overflow the stack.
const maxDepth = 64;

/** Reads the events, or the whole message, of the Messages API. */
export function createAnswerReader({ secrets }: AnswerReaderOptions): AnswerReader {
  const blocks = new Map<number, Block>();
  let blockCount = 0;
  let calls = 0;
  /** How many thinking blocks, runs of text and tool calls there are so far. */
  let places = 0;
  let isInText = false;
  const usage: Record<string, Json> = {};
  let started = false;
  let written = false;
  let ended = false;
  let reason: FinishReason | null = null;
  let stopText: string | null = null;
  let refusal: Refusal | null = null;

  const begin = (message: JsonObject, into: CompletionEvent[]): void => {
    if (started) return;
    started = true;
    const { id, model } = message;
    into.push({
      type: "answer-started",
      ...labelOf("providerRequestId", id),
      ...labelOf("providerModel", model),
    });
  };

  const addUsage = (given: Json | undefined, isStart: boolean, into: CompletionEvent[]): void => {
    const members = membersOf(given);
    let isReported = false;
    const hasPrompt = promptMembers.some((name) => (tokenCount(members[name]) ?? 0) > 0);
    for (const name of usageMembers) {
      const value = members[name];
      // A message that begins only has a first guess of its output. Some upstreams count its prompt at the end, and first say 0.
      const isGuess =
        isStart && (name === "output_tokens" || (!hasPrompt && name !== "service_tier"));
      if (value === undefined || value === null || isGuess) continue;
      usage[name] = value;
      isReported = true;
    }
    if (!isReported) return;
    const report = usageReport(usage);
    if (report !== null) into.push({ type: "usage", usage: report });
  };

  const addText = (text: string | null, into: CompletionEvent[]): void => {
    if (text === null) return;
    if (!isInText) places++;
    isInText = true;
    into.push({ type: "text-delta", text });
  };

  const addThinking = (index: number, text: string | null, into: CompletionEvent[]): void => {
    if (text === null) return;
    isInText = false;
    const thinking_blocks = [{ type: "thinking", index, thinking: text }];
    into.push({ type: "state", fields: { thinking_blocks } }, { type: "reasoning-delta", text });
  };

  const addInput = (index: number, json: string, into: CompletionEvent[]): void => {
    if (json !== "") into.push({ type: "tool-call-delta", index, arguments: json });
  };

  /** `exact` is the same block with all digits of its numbers. */
  const open = (content: JsonObject, exact: Json | undefined, into: CompletionEvent[]): Block => {
    if (++blockCount > maxBlocks)
      throw invalidAnswer("too_many_values", "The provider's answer has too many blocks.");
    const { type } = content;
    if (textOf(type) === null) throw invalidEvent("The provider sent a block without a type.");
    switch (type) {
      case "text":
        addText(textIn(content["text"]), into);
        return { kind: "text" };
      case "thinking": {
        const index = places++;
        addThinking(index, textIn(content["thinking"]), into);
        return { kind: "thinking", index, signature: textIn(content["signature"]) ?? "" };
      }
      case "redacted_thinking": {
        const data = textIn(content["data"]);
        const thinking_blocks = [{ type: "redacted_thinking", index: places++, data }];
        if (data !== null) into.push({ type: "state", fields: { thinking_blocks } });
        return { kind: "other" };
      }
      case "tool_use": {
        const { id, name, input } = content;
        if (textOf(id) === null || textOf(name) === null)
          throw invalidEvent("The provider sent a tool call without an id or a name.");
        places++;
        isInText = false;
        into.push({ type: "tool-call-started", index: calls, id: String(id), name: String(name) });
        const { input: exactInput } = membersOf(exact);
        return { kind: "tool", index: calls++, input, exact: exactInput, hasInput: false };
      }
      default:
        return { kind: "other" };
    }
  };

  const extend = (block: Block, delta: JsonObject, into: CompletionEvent[]): void => {
    const { type } = delta;
    if (block.kind === "text" && type === "text_delta") addText(textIn(delta["text"]), into);
    else if (block.kind === "thinking" && type === "thinking_delta")
      addThinking(block.index, textIn(delta["thinking"]), into);
    else if (block.kind === "thinking" && type === "signature_delta")
      addSignature(block, textIn(delta["signature"]) ?? "");
    else if (block.kind === "tool" && type === "input_json_delta") {
      const json = textIn(delta["partial_json"]) ?? "";
      block.hasInput ||= json !== "";
      addInput(block.index, json, into);
    }
  };

  const close = (block: Block, into: CompletionEvent[]): void => {
    if (block.kind === "thinking" && block.signature !== "") {
      const { index, signature } = block;
      into.push({
        type: "state",
        fields: { thinking_blocks: [{ type: "thinking", index, signature }] },
      });
    }
    if (block.kind === "tool" && !block.hasInput) addInput(block.index, inputOf(block), into);
  };

  const stop = (message: JsonObject): void => {
    reason ??= finishReason(message["stop_reason"]);
    stopText ??= textOf(message["stop_sequence"]);
    refusal ??= refusalIn(message["stop_details"]);
  };

  const noteWritten = (run: () => void, into: readonly CompletionEvent[]): void => {
    const before = into.length;
    run();
    if (into.length > before) written = true;
  };

  const throwError = (answered: Json): void => {
    const error = errorIn(answered);
    if (error !== null)
      throw errorEvent(error, { answered: written, secrets, format: errorFormat });
  };

  const addEvent = (event: JsonObject, into: CompletionEvent[], text: string): void => {
    const { type, index } = event;
    switch (type) {
      case "message_start": {
        const message = membersOf(event["message"]);
        begin(message, into);
        addUsage(message["usage"], true, into);
        return;
      }
      case "content_block_start": {
        const exact = membersOf(exactJson(text))["content_block"];
        blocks.set(placeOf(index), open(membersOf(event["content_block"]), exact, into));
        return;
      }
      case "content_block_delta": {
        const block = blocks.get(placeOf(index));
        if (!block) throw invalidEvent("The provider continued a block that it never began.");
        extend(block, membersOf(event["delta"]), into);
        return;
      }
      case "content_block_stop": {
        const block = blocks.get(placeOf(index));
        blocks.delete(placeOf(index));
        if (block) close(block, into);
        return;
      }
      case "message_delta":
        stop(membersOf(event["delta"]));
        addUsage(event["usage"], false, into);
        return;
      case "message_stop":
        ended = true;
    }
  };

  return {
    add(chunk, into, text) {
      throwError(chunk);
      if (!isObject(chunk)) throw invalidEvent("The provider sent an event that is not an object.");
      const isContent = String(chunk["type"]).startsWith("content_block_");
      if (isContent) begin({}, into);
      if (isContent) noteWritten(() => addEvent(chunk, into, text), into);
      else addEvent(chunk, into, text);
    },
    addWhole(body, into, text) {
      throwError(body);
      if (!isObject(body) || !isList(body["content"]))
        throw invalidAnswer("invalid_answer", "The provider's answer contains no message.");
      begin(body, into);
      const content = itemsOf(body["content"]);
      const exact = itemsOf(membersOf(exactJson(text))["content"]);
      noteWritten(() => {
        for (const [at, block] of content.entries())
          close(open(membersOf(block), exact[at], into), into);
      }, into);
      stop(body);
      addUsage(body["usage"], false, into);
    },
    written: () => written,
    finished: () => reason !== null,
    ended: () => ended,
    finish(into) {
      if (reason === null)
        throw invalidAnswer("answer_cut", "The provider's answer ended before it was complete.");
      for (const block of blocks.values()) close(block, into);
      into.push({
        type: "finish",
        reason,
        ...(stopText === null ? {} : { stopText }),
        ...(refusal === null ? {} : { refusal }),
      });
    },
  };
}

function addSignature(block: Extract<Block, { kind: "thinking" }>, piece: string): void {
  block.signature += piece;
  if (block.signature.length > maxSignatureLength)
    throw invalidAnswer("answer_too_large", "The provider's answer is too large.");
}

/** A text of a block; null without one. Any other value would be lost, and its answer look whole. */
function textIn(value: Json | undefined): string | null {
  if (value === undefined || value === null || typeof value === "string") return textOf(value);
  throw invalidEvent("The provider sent a block whose text is not a string.");
}

function placeOf(index: Json | undefined): number {
  if (typeof index === "number" && Number.isSafeInteger(index) && index >= 0) return index;
  throw invalidEvent("The provider sent a block without an index.");
}

/** The input of a call that came in one piece, as JSON text. A stream leaves out the pieces of an empty one. */
function inputOf({ input = {}, exact = input }: Extract<Block, { kind: "tool" }>): string {
  if (isShallow(input, maxDepth)) return JSON.stringify(exact);
  throw invalidEvent("The provider sent tool arguments that are nested too deeply.");
}

function refusalIn(details: Json | undefined): Refusal | null {
  const { type, category, explanation } = membersOf(details);
  if (type !== "refusal") return null;
  return { category: textOf(category), explanation: textOf(explanation) };
}

/** An unknown finish reason is an error, not a successful end. */
function finishReason(value: Json | undefined): FinishReason | null {
  if (value === undefined || value === null) return null;
  const reason = typeof value === "string" ? finishReasons.get(value) : undefined;
  if (reason) return reason;
  throw invalidAnswer("unknown_finish_reason", "The provider sent an unknown finish reason.");
}

/** The members of `usage` that add up to the prompt. */
const promptMembers = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

/** The members of `usage` that count. The others are not kept: an upstream may make up some in every event. */
const usageMembers = [
  "input_tokens",
  "output_tokens",
  "cache_creation",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "output_tokens_details",
  "service_tier",
];

/**
 * Converts the `usage` of a message; null if it has no valid figure. Anthropic counts what it reads from its cache, what it
 * writes to it, and the rest of the prompt apart, so the prompt is their sum.
 */
export function usageReport(usage: JsonObject): UsageReport | null {
  const creation = membersOf(usage["cache_creation"]);
  const input = tokenCount(usage["input_tokens"]);
  const read = tokenCount(usage["cache_read_input_tokens"]);
  const for5m = tokenCount(creation["ephemeral_5m_input_tokens"]);
  const for1h = tokenCount(creation["ephemeral_1h_input_tokens"]);
  const written = tokenCount(usage["cache_creation_input_tokens"]) ?? sumOf(for5m, for1h);
  const promptTokens = input === undefined ? undefined : input + (read ?? 0) + (written ?? 0);
  const completionTokens = tokenCount(usage["output_tokens"]);
  const counted = { promptTokens, completionTokens };
  const details: Readonly<Record<keyof UsageDetails, number | undefined>> = {
    cachedTokens: read,
    cacheWriteTokens: written,
    cacheWrite1hTokens: for1h,
    reasoningTokens: tokenCount(membersOf(usage["output_tokens_details"])["thinking_tokens"]),
    audioInputTokens: undefined,
    audioOutputTokens: undefined,
    imageInputTokens: undefined,
    imageOutputTokens: undefined,
  };
  const serviceTier = tierIn(usage["service_tier"]);
  const report: UsageReport = {
    ...(promptTokens === undefined ? {} : { promptTokens }),
    ...(completionTokens === undefined ? {} : { completionTokens }),
    ...fittingDetails(details, counted),
    ...(serviceTier === undefined ? {} : { serviceTier }),
  };
  return Object.keys(report).length === 0 ? null : report;
}

function sumOf(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
}
