import type { Json } from "../kernel/stable-json.ts";
import type {
  CompletionEvent,
  FinishReason,
  ReasoningField,
  Refusal,
  ShownField,
  UsageReport,
} from "./completion-event.ts";
import type { EmbeddingVector } from "./embedding.ts";
import type { AssistantMessage, Message, ToolCall } from "./message.ts";
import {
  createStateFold,
  createStateSizeCounter,
  maxStateBytes,
  type StateFields,
  type StateFold,
  type StateSize,
  type StateSizeCounter,
  stateBytes,
} from "./provider-state.ts";

/** Details of a text, as the provider sent them. */
export interface TextDetails {
  /** One entry per `logprobs` event. */
  readonly logprobs: readonly Json[];
  /** The sources that the text cites, at most 256. */
  readonly annotations: readonly Json[];
}

/** A part of an answer: consecutive text of one kind, or one tool call. */
export type CompletionPart =
  | { readonly type: "text"; readonly text: string; readonly details?: TextDetails }
  | { readonly type: "refusal"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string; readonly field?: ReasoningField }
  | { readonly type: "tool-call"; readonly call: ToolCall; readonly fields?: StateFields };

/** A whole answer: the fold of its events. */
export interface Completion {
  readonly parts: readonly CompletionPart[];
  /** State that belongs to the message as a whole, without the text of its reasoning. Absent if there is none. */
  readonly fields?: StateFields;
  /** All of its state as one sealed text, for formats that can carry only text. Absent if not requested. */
  readonly sealedState?: string;
  /** Citations and images shown next to the text. Absent if there are none. */
  readonly shown?: Partial<Readonly<Record<ShownField, readonly Json[]>>>;
  /** In the order of the inputs. Absent for an answer in text. */
  readonly embeddings?: readonly EmbeddingVector[];
  /** One entry per `logprobs` event. */
  readonly logprobs: readonly Json[];
  /** Null for an answer that did not finish. */
  readonly finishReason: FinishReason | null;
  /** The stop text that ended the answer. Absent if none did, or the provider doesn't say which. */
  readonly stopText?: string;
  /** Absent if the provider doesn't say why it refused. */
  readonly refusal?: Refusal;
  /** The last value of each field the provider reported. */
  readonly usage: UsageReport;
}

type OpenPart =
  | {
      readonly type: "text" | "reasoning" | "refusal";
      readonly field: ReasoningField | undefined;
      /** Of a text; null while it has none. */
      details: DetailsFold | null;
      readonly text: JoinedText;
    }
  | {
      readonly type: "tool-call";
      readonly id: string;
      readonly name: string;
      state: StateFold | null;
      readonly arguments: JoinedText;
    };

type State = Extract<CompletionEvent, { type: "state" }>;
type CallStarted = Extract<CompletionEvent, { type: "tool-call-started" }>;
const nothingReported: UsageReport = {};
const noState: StateSize = { values: 0, bytes: 0, sealedTexts: 0 };

type OpenCall = Extract<OpenPart, { type: "tool-call" }>;

/** The most sources, and the most images, that one answer shows. */
const maxShown = 256;

/** Collects the details of a text: those that arrive while it is the last part, and earlier ones without a text. */
export interface DetailsFold {
  /** Adds the event's details. Returns the annotations that are new. */
  add(event: CompletionEvent): readonly Json[];
  details(): TextDetails;
}

export function createDetailsFold(): DetailsFold {
  const logprobs: Json[] = [];
  const annotations: Json[] = [];
  return {
    add(event) {
      if (event.type === "logprobs") logprobs.push(event.logprobs);
      if (event.type !== "shown" || event.name !== "annotations") return [];
      const taken = event.entries.slice(0, maxShown - annotations.length);
      annotations.push(...taken);
      return taken;
    },
    details: () => ({ logprobs, annotations }),
  };
}

/** Characters of deltas that are joined at once. */
const joinedAtOnce = 256;

/**
 * A text that grows by small deltas. V8 keeps a text that grew by `+=` as a tree with a node per delta, which takes six
 * times as much memory as the text, until something reads it.
 */
class JoinedText {
  #text: string;
  #deltas: string[] = [];
  #characters = 0;

  constructor(text: string) {
    this.#text = text;
  }

  add(delta: string): void {
    this.#deltas.push(delta);
    this.#characters += delta.length;
    if (this.#characters >= joinedAtOnce) this.#join();
  }

  toString(): string {
    this.#join();
    return this.#text;
  }

  #join(): void {
    this.#text += this.#deltas.join("");
    this.#deltas = [];
    this.#characters = 0;
  }
}

/**
 * Collects events into a completion. Consecutive text of one kind is one part. Another kind of text, or a tool call, starts
 * the next part. Log probabilities can be much larger than the answer, so a stream that has written them doesn't keep them.
 */
export class CompletionFold {
  readonly #keepsLogprobs: boolean;
  readonly #parts: OpenPart[] = [];
  /** The first call of each index. Deltas with the index belong to it. */
  #calls: Map<number, OpenCall> | null = null;
  #shown: Partial<Record<ShownField, Json[]>> | null = null;
  #finishReason: FinishReason | null = null;
  #stopText: string | undefined;
  #refusal: Refusal | undefined;
  #usage: UsageReport = nothingReported;
  // Most answers have neither state nor details.
  #logprobs: Json[] | null = null;
  #scale: StateSizeCounter | null = null;
  #state: StateFold | null = null;
  #unclaimed: DetailsFold | null = null;
  #vectors: Map<number, EmbeddingVector> | null = null;
  #bytes = 0;

  constructor({ keepsLogprobs = true } = {}) {
    this.#keepsLogprobs = keepsLogprobs;
  }

  add(event: CompletionEvent): void {
    switch (event.type) {
      case "text-delta":
        this.#say("text", event.text);
        return;
      case "reasoning-delta":
        this.#say("reasoning", event.text, event.field);
        return;
      case "refusal-delta":
        this.#say("refusal", event.text);
        return;
      case "tool-call-started":
        this.#beginCall(event);
        return;
      case "tool-call-delta":
        this.#bytes += Buffer.byteLength(event.arguments);
        this.#calls?.get(event.index)?.arguments.add(event.arguments);
        return;
      case "state":
        this.#addState(event);
        return;
      case "shown":
        this.#shown ??= {};
        this.#shown[event.name] = [...(this.#shown[event.name] ?? []), ...event.entries].slice(
          0,
          maxShown,
        );
        this.#addDetail(event);
        return;
      case "logprobs":
        if (!this.#keepsLogprobs) return;
        this.#logprobs ??= [];
        this.#logprobs.push(event.logprobs);
        this.#addDetail(event);
        return;
      case "embedding":
        this.#vectors ??= new Map();
        this.#vectors.set(event.index, event.vector);
        return;
      case "usage":
        this.#usage = { ...this.#usage, ...event.usage };
        return;
      case "finish":
        this.#finishReason = event.reason;
        this.#stopText = event.stopText;
        this.#refusal = event.refusal;
    }
  }

  completion(): Completion {
    const fields = this.#state?.fields() ?? null;
    return {
      parts: this.#parts.map(closed),
      ...(fields === null ? {} : { fields }),
      ...(this.#shown === null ? {} : { shown: this.#shown }),
      ...(this.#vectors === null ? {} : { embeddings: inOrder(this.#vectors) }),
      logprobs: this.#logprobs ?? [],
      finishReason: this.#finishReason,
      ...(this.#stopText === undefined ? {} : { stopText: this.#stopText }),
      ...(this.#refusal === undefined ? {} : { refusal: this.#refusal }),
      usage: this.#usage,
    };
  }

  /** Null until the model said why it stopped. */
  finishReason(): FinishReason | null {
    return this.#finishReason;
  }

  /** The last value of each field the provider has reported so far. */
  usage(): UsageReport {
    return this.#usage;
  }

  /** The vectors so far, by the index of their input. Null without any. */
  vectors(): ReadonlyMap<number, EmbeddingVector> | null {
    return this.#vectors;
  }

  /** UTF-8 bytes of everything the model has written so far. */
  outputBytes(): number {
    return this.#bytes;
  }

  /** How much state has come so far, of the message and of its calls. */
  stateSize(): StateSize {
    return this.#scale?.size() ?? noState;
  }

  #say(
    type: "text" | "reasoning" | "refusal",
    text: string,
    field?: ReasoningField | undefined,
  ): void {
    if (text === "") return;
    this.#bytes += Buffer.byteLength(text);
    const last = this.#parts.at(-1);
    if (last?.type === type) last.text.add(text);
    else
      this.#parts.push({
        type,
        text: new JoinedText(text),
        field,
        details: type === "text" ? this.#claimDetails() : null,
      });
  }

  #beginCall({ index, id, name }: CallStarted): void {
    this.#bytes += Buffer.byteLength(name);
    const call: OpenCall = {
      type: "tool-call",
      id,
      name,
      state: null,
      arguments: new JoinedText(""),
    };
    this.#parts.push(call);
    this.#calls ??= new Map();
    if (!this.#calls.has(index)) this.#calls.set(index, call);
  }

  #addState({ index, fields }: State): void {
    this.#scale ??= createStateSizeCounter();
    if (index === undefined) {
      this.#state ??= createStateFold(this.#scale);
      this.#state.add(fields);
      return;
    }
    const call = this.#calls?.get(index);
    if (call === undefined) return;
    call.state ??= createStateFold(this.#scale);
    call.state.add(fields);
  }

  #addDetail(event: CompletionEvent): void {
    const last = this.#parts.at(-1);
    if (last?.type === "text") {
      last.details ??= createDetailsFold();
      last.details.add(event);
    } else {
      this.#unclaimed ??= createDetailsFold();
      this.#unclaimed.add(event);
    }
  }

  #claimDetails(): DetailsFold | null {
    const claimed = this.#unclaimed;
    this.#unclaimed = null;
    return claimed;
  }
}

function inOrder(vectors: ReadonlyMap<number, EmbeddingVector>): readonly EmbeddingVector[] {
  return [...vectors].sort(([one], [other]) => one - other).map(([, vector]) => vector);
}

function closed(part: OpenPart): CompletionPart {
  if (part.type !== "tool-call") return closedText(part);
  const { id, name } = part;
  const fields = part.state?.fields() ?? null;
  return {
    type: "tool-call",
    call: { id, type: "function", function: { name, arguments: part.arguments.toString() } },
    ...(fields === null ? {} : { fields }),
  };
}

function closedText(part: Exclude<OpenPart, OpenCall>): CompletionPart {
  const { type, field } = part;
  const text = part.text.toString();
  if (type === "reasoning") return field === undefined ? { type, text } : { type, text, field };
  const details = part.details?.details() ?? null;
  const hasDetails = details !== null && details.logprobs.length + details.annotations.length > 0;
  return type === "text" && hasDetails ? { type, text, details } : { type, text };
}

/** All text of one kind; null if there is none. */
export function textOfKind(
  { parts }: Completion,
  type: "text" | "reasoning" | "refusal",
): string | null {
  let said: string | null = null;
  for (const part of parts) if (part.type === type) said = (said ?? "") + part.text;
  return said;
}

/** All state of the whole message, including the reasoning's text under the names by which the provider wants it back. */
export function messageFields({ parts, fields }: Completion): StateFields {
  const reasoning: Partial<Record<ReasoningField, string>> = {};
  for (const part of parts)
    if (part.type === "reasoning" && part.field !== undefined)
      reasoning[part.field] = (reasoning[part.field] ?? "") + part.text;
  return { ...fields, ...reasoning };
}

/** The tool calls, in the order they began. */
export function toolCallsOf({ parts }: Completion): readonly ToolCall[] {
  return parts.flatMap((part) => (part.type === "tool-call" ? part.call : []));
}

/** The one message a Chat Completions client sends back as history: the answer without its reasoning. */
export function replyMessage(completion: Completion): AssistantMessage {
  const refusal = textOfKind(completion, "refusal");
  const toolCalls = toolCallsOf(completion);
  return {
    role: "assistant",
    content: textOfKind(completion, "text"),
    ...(refusal === null ? {} : { refusal }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  };
}

/**
 * A reply with the state to record. State of the answer goes to the message that calls tools, otherwise to the last one.
 * State of tool calls goes to the calls, in order. If state takes more than 256 KiB, only its size is recorded.
 */
export function withState(
  reply: readonly Message[],
  completion: Completion,
  from: string,
): readonly Message[] {
  const message = messageFields(completion);
  const calls = completion.parts.flatMap((part) =>
    part.type === "tool-call" ? [part.fields ?? {}] : [],
  );
  const bytes = [message, ...calls].reduce(
    (sum, fields) => sum + (isEmpty(fields) ? 0 : stateBytes(fields)),
    0,
  );
  if (bytes === 0) return reply;
  const calling = reply.findLastIndex((said) => said.role === "assistant" && said.tool_calls);
  const place = calling < 0 ? reply.findLastIndex(({ role }) => role === "assistant") : calling;
  if (bytes > maxStateBytes)
    return reply.map((said, at) =>
      at === place ? { ...said, state: { from, fields: {}, omittedBytes: bytes } } : said,
    );
  let called = 0;
  return reply.map((said, at) => {
    if (said.role !== "assistant") return said;
    const toolCalls = said.tool_calls?.map((call) => withOwnState(call, from, calls[called++]));
    return {
      ...withOwnState(said, from, at === place ? message : undefined),
      ...(toolCalls === undefined ? {} : { tool_calls: toolCalls }),
    };
  });
}

function withOwnState<Carrier extends object>(
  carrier: Carrier,
  from: string,
  fields: StateFields | undefined,
): Carrier {
  return fields === undefined || isEmpty(fields)
    ? carrier
    : { ...carrier, state: { from, fields } };
}

function isEmpty(fields: StateFields): boolean {
  return Object.keys(fields).length === 0;
}
