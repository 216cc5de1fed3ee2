import type { CompletionEvent, FinishReason, Json } from "@tollgate/core/provider";
import {
  type AnswerReader,
  type AnswerReaderOptions,
  type ErrorFormat,
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
} from "@tollgate/provider-http";
import { addMessageState } from "./provider-state.ts";
import { createToolCalls, type ToolCalls } from "./tool-calls.ts";
import { usageReport } from "./usage-report.ts";

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["tool_calls", "tool_calls"],
  ["content_filter", "content_filter"],
  ["function_call", "tool_calls"],
  ["eos", "stop"],
  ["eos_token", "stop"],
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["max_tokens", "length"],
  ["model_length", "length"],
]);

export const errorFormat: ErrorFormat = { codeMember: "code", statuses: new Map() };

export const frameText: FrameText = {
  memberOf: (event) => (event.type === "text-delta" ? "content" : event.field),
  textIn(chunk, member) {
    const choices = itemsOf(membersOf(chunk)["choices"]);
    const delta = membersOf(membersOf(choices[0])["delta"]);
    // Fragments of tool calls accumulate, even without an event.
    const hasCalls = itemsOf(delta["tool_calls"]).length > 0 || Boolean(delta["function_call"]);
    return choices.length > 1 || hasCalls ? undefined : delta[member];
  },
};

export function createAnswerReader({ seed, secrets }: AnswerReaderOptions): AnswerReader {
  let toolCalls: ToolCalls | null = null;
  const addShown = createShown();
  let started = false;
  let written = false;
  let reason: FinishReason | null = null;
  let tier: Json | undefined;

  const addCalls = (fragments: Json, into: CompletionEvent[], exact?: () => Json): void => {
    toolCalls ??= createToolCalls(seed);
    toolCalls.add(fragments, into, exact);
  };

  /** `members` is the choice's delta, or its whole message. `exact` returns its calls with all digits. */
  const addChoice = (
    choice: JsonObject,
    members: JsonObject,
    into: CompletionEvent[],
    exact: () => Json,
  ): void => {
    const { logprobs, finish_reason } = choice;
    const before = into.length;
    const { content, refusal, tool_calls, function_call } = members;
    addReasoning(members, into);
    addText("text-delta", contentOf(content), into);
    if (isObject(logprobs)) into.push({ type: "logprobs", logprobs });
    addText("refusal-delta", textOf(refusal), into);
    addShown(members, into);
    if (tool_calls) addCalls(tool_calls, into, exact);
    if (isObject(function_call)) addCalls([{ index: 0, function: function_call }], into);
    if (into.length > before) written = true;
    addMessageState(members, into);
    reason ??= finishReason(finish_reason);
  };

  /** Upstreams repeat their tier in every chunk, and send null as usage until the end. */
  const addUsage = ({ usage, service_tier }: JsonObject, into: CompletionEvent[]): void => {
    if (!isObject(usage) && (service_tier === undefined || service_tier === tier)) return;
    tier = service_tier;
    const report = usageReport(usage, service_tier);
    if (report) into.push({ type: "usage", usage: report });
  };

  const begin = (chunk: JsonObject, into: CompletionEvent[]): void => {
    if (!started) into.push(answerStarted(chunk));
    started = true;
  };

  const throwError = (answered: Json): void => {
    const error = errorIn(answered);
    if (error !== null)
      throw errorEvent(error, { answered: written, secrets, format: errorFormat });
  };

  return {
    add(chunk, into, text) {
      throwError(chunk);
      if (!isObject(chunk)) throw invalidEvent("The provider sent an event that is not an object.");
      begin(chunk, into);
      const choice = firstChoice(chunk["choices"]);
      if (choice) addChoice(choice, membersOf(choice["delta"]), into, exactCalls(text, "delta"));
      addUsage(chunk, into);
    },
    addWhole(body, into, text) {
      throwError(body);
      if (!isObject(body) || !hasMessages(body)) throw noCompletion();
      begin(body, into);
      const choice = firstChoice(body["choices"]);
      const message = withIndexes(membersOf(choice?.["message"]));
      if (choice) addChoice(choice, message, into, exactCalls(text, "message"));
      addUsage(body, into);
    },
    written: () => written,
    finished: () => reason !== null,
    // Streams end with `[DONE]`, which is not a chunk.
    ended: () => false,
    finish(into) {
      if (reason === null)
        throw invalidAnswer("answer_cut", "The provider's answer ended before it was complete.");
      toolCalls?.finish();
      into.push({ type: "finish", reason });
    },
  };
}

/** The tool calls of a text's first choice with all digits of their numbers, once they are asked for. */
function exactCalls(text: string, member: "delta" | "message"): () => Json {
  let calls: Json | undefined;
  return () => {
    if (calls !== undefined) return calls;
    const choice = firstChoice(membersOf(exactJson(text))["choices"]);
    calls = membersOf(choice?.[member])["tool_calls"] ?? null;
    return calls;
  };
}

function hasMessages({ choices }: JsonObject): boolean {
  return (
    isList(choices) &&
    choices.length > 0 &&
    choices.every((choice) => isObject(membersOf(choice)["message"]))
  );
}

/** The calls of a whole message have no index: their order is the index. */
function withIndexes(message: JsonObject): JsonObject {
  const { tool_calls } = message;
  if (!isList(tool_calls)) return message;
  return {
    ...message,
    tool_calls: tool_calls.map((call, index) => (isObject(call) ? { ...call, index } : call)),
  };
}

function noCompletion(): Error {
  return invalidAnswer("invalid_answer", "The provider's answer contains no completion.");
}

function answerStarted({ id, model, system_fingerprint }: JsonObject): CompletionEvent {
  return {
    type: "answer-started",
    ...labelOf("providerRequestId", id),
    ...labelOf("providerModel", model),
    ...labelOf("systemFingerprint", system_fingerprint),
  };
}

/** Tollgate requests one choice: it has index 0, or no index. */
function firstChoice(choices: Json | undefined): JsonObject | undefined {
  if (choices === undefined || choices === null) return undefined;
  if (!isList(choices) || !choices.every(isObject))
    throw invalidEvent("The provider sent invalid choices.");
  return choices.find(({ index }) => index === 0 || index === undefined || index === null);
}

function contentOf(content: Json | undefined): string | null {
  if (content === undefined || content === null || typeof content === "string")
    return textOf(content);
  throw invalidEvent("The provider sent content that is not text.");
}

/** If both fields are set, they contain the same text. It is sent back in the first one. */
function addReasoning(members: JsonObject, into: CompletionEvent[]): void {
  for (const field of ["reasoning_content", "reasoning"] as const) {
    const text = textOf(members[field]);
    if (text === null) continue;
    into.push({ type: "reasoning-delta", text, field });
    return;
  }
}

function addText(
  type: "text-delta" | "refusal-delta",
  text: string | null,
  into: CompletionEvent[],
): void {
  if (text !== null) into.push({ type, text });
}

/** An unknown finish reason is an error, not a successful end. */
function finishReason(value: Json | undefined): FinishReason | null {
  if (value === undefined || value === null || value === "") return null;
  const reason = typeof value === "string" ? finishReasons.get(value) : undefined;
  if (reason) return reason;
  throw invalidAnswer("unknown_finish_reason", "The provider sent an unknown finish reason.");
}

/** The limit of annotations, and of images, of one answer. A broken upstream could send them without end. */
const maxEntries = 256;

/** Adds the annotations and images of a delta or of a whole message. */
function createShown(): (delta: JsonObject, into: CompletionEvent[]) => void {
  const remaining = { annotations: maxEntries, images: maxEntries };
  return (delta, into) => {
    for (const name of ["annotations", "images"] as const) {
      if (delta[name] === undefined) continue;
      const entries = listIn(delta[name]).slice(0, remaining[name]);
      if (entries.length === 0) continue;
      remaining[name] -= entries.length;
      into.push({ type: "shown", name, entries });
    }
  };
}

function listIn(value: Json | undefined): readonly Json[] {
  return isList(value) ? value.filter(isObject) : [];
}
