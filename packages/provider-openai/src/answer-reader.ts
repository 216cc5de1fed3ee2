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
  ["model_context_window_exceeded", "length"],
  ["sensitive", "content_filter"],
]);

/** Gemini says which filter stopped the answer. */
const filtered = /^content_filter: \w/;

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

export function createAnswerReader(options: AnswerReaderOptions): AnswerReader {
  return new ChatAnswerReader(options);
}

/** Every open stream has one, so it is a class: closures would take several times its memory. */
class ChatAnswerReader implements AnswerReader {
  readonly #options: AnswerReaderOptions;
  #toolCalls: ToolCalls | null = null;
  #shown: ShownCounts | null = null;
  #started = false;
  #written = false;
  #reason: FinishReason | null = null;
  #tier: Json | undefined;

  constructor(options: AnswerReaderOptions) {
    this.#options = options;
  }

  add(chunk: Json, into: CompletionEvent[], text: string): void {
    this.#throwError(chunk);
    if (!isObject(chunk)) throw invalidEvent("The provider sent an event that is not an object.");
    this.#begin(chunk, into);
    const choice = firstChoice(chunk["choices"]);
    if (choice)
      this.#addChoice(choice, membersOf(choice["delta"]), into, exactCalls(text, "delta"));
    this.#addUsage(chunk, into);
  }

  addWhole(body: Json, into: CompletionEvent[], text: string): void {
    this.#throwError(body);
    if (!isObject(body) || !hasMessages(body)) throw noCompletion();
    this.#begin(body, into);
    const choice = firstChoice(body["choices"]);
    const message = withIndexes(membersOf(choice?.["message"]));
    if (choice) this.#addChoice(choice, message, into, exactCalls(text, "message"));
    this.#addUsage(body, into);
  }

  written(): boolean {
    return this.#written;
  }

  finished(): boolean {
    return this.#reason !== null;
  }

  /** Streams end with `[DONE]`, which is not a chunk. */
  ended(): boolean {
    return false;
  }

  finish(into: CompletionEvent[]): void {
    const reason = this.#reason;
    if (reason === null)
      throw invalidAnswer("answer_cut", "The provider's answer ended before it was complete.");
    this.#toolCalls?.finish();
    into.push({ type: "finish", reason });
  }

  #throwError(answered: Json): void {
    const { secrets } = this.#options;
    const error = errorIn(answered);
    if (error !== null)
      throw errorEvent(error, { answered: this.#written, secrets, format: errorFormat });
  }

  #begin(chunk: JsonObject, into: CompletionEvent[]): void {
    // Azure first tells what its filter found in the prompt. The answer's labels come after that.
    if (this.#started || isBeforeAnswer(chunk)) return;
    into.push(answerStarted(chunk));
    this.#started = true;
  }

  /** `members` is the choice's delta, or its whole message. `exact` returns its calls with all digits. */
  #addChoice(
    choice: JsonObject,
    members: JsonObject,
    into: CompletionEvent[],
    exact: () => Json,
  ): void {
    const { logprobs, finish_reason } = choice;
    const before = into.length;
    const { content, refusal, tool_calls, function_call } = members;
    addReasoning(members, into);
    addContent(content, into);
    if (isObject(logprobs)) into.push({ type: "logprobs", logprobs });
    addText("refusal-delta", textOf(refusal), into);
    this.#addShown(members, into);
    if (tool_calls) this.#addCalls(tool_calls, into, exact);
    if (isObject(function_call)) this.#addCalls([{ index: 0, function: function_call }], into);
    if (into.length > before) this.#written = true;
    addMessageState(members, into);
    this.#reason ??= finishReason(finish_reason);
  }

  #addCalls(fragments: Json, into: CompletionEvent[], exact?: () => Json): void {
    this.#toolCalls ??= createToolCalls(this.#options.seed);
    this.#toolCalls.add(fragments, into, exact);
  }

  /** Adds the annotations and images of a delta or of a whole message. */
  #addShown(members: JsonObject, into: CompletionEvent[]): void {
    for (const name of ["annotations", "images"] as const) {
      if (members[name] === undefined) continue;
      this.#shown ??= { annotations: 0, images: 0 };
      const entries = listIn(members[name]).slice(0, maxEntries - this.#shown[name]);
      if (entries.length === 0) continue;
      this.#shown[name] += entries.length;
      into.push({ type: "shown", name, entries });
    }
  }

  /** Upstreams repeat their tier in every chunk, and send null as usage until the end. */
  #addUsage({ usage, service_tier }: JsonObject, into: CompletionEvent[]): void {
    if (!isObject(usage) && (service_tier === undefined || service_tier === this.#tier)) return;
    this.#tier = service_tier;
    const report = usageReport(usage, service_tier);
    if (report) into.push({ type: "usage", usage: report });
  }
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
    choices.every((choice) => {
      const { message, finish_reason } = membersOf(choice);
      // Gemini sends no message if it refuses the prompt.
      return isObject(message) || (message === undefined && isFiltered(finish_reason));
    })
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

function isBeforeAnswer({ id, choices }: JsonObject): boolean {
  return id === "" && isList(choices) && choices.length === 0;
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

/** Content is a text. Mistral's models that reason send a list of chunks. */
function addContent(content: Json | undefined, into: CompletionEvent[]): void {
  if (typeof content === "string") addText("text-delta", textOf(content), into);
  else if (content === undefined || content === null) return;
  else if (isList(content)) for (const chunk of content) addChunk(membersOf(chunk), into);
  else throw notText();
}

function addChunk({ type, text, thinking }: JsonObject, into: CompletionEvent[]): void {
  if (type === "text") addText("text-delta", chunkText(text), into);
  else if (type === "thinking") addThinking(thinking, into);
  // A reference names sources. It has no text.
  else if (type !== "reference") throw notText();
}

/** Mistral rejects thinking that is sent back as a field of the message, so the event has no field. */
function addThinking(thinking: Json | undefined, into: CompletionEvent[]): void {
  if (thinking === undefined || !isList(thinking)) throw notText();
  for (const chunk of thinking) {
    const { type, text } = membersOf(chunk);
    const said = type === "text" ? chunkText(text) : null;
    if (said !== null) into.push({ type: "reasoning-delta", text: said });
  }
}

function chunkText(text: Json | undefined): string | null {
  if (typeof text === "string") return textOf(text);
  throw notText();
}

function notText(): Error {
  return invalidEvent("The provider sent content that is not text.");
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
  if (isFiltered(value)) return "content_filter";
  throw invalidAnswer("unknown_finish_reason", "The provider sent an unknown finish reason.");
}

function isFiltered(reason: Json | undefined): boolean {
  return typeof reason === "string" && filtered.test(reason);
}

/** The limit of annotations, and of images, of one answer. A broken upstream could send them without end. */
const maxEntries = 256;

/** How many annotations and images an answer has so far. */
type ShownCounts = Record<"annotations" | "images", number>;

function listIn(value: Json | undefined): readonly Json[] {
  return isList(value) ? value.filter(isObject) : [];
}
