import { ProviderError } from "../contracts/provider.ts";
import type { CompletionEvent } from "../domain/completion-event.ts";
import { type EmbeddingVector, isVector } from "../domain/embedding.ts";
import type { Limits } from "../domain/limits.ts";
import { maxCallLabelLength } from "../domain/message.ts";
import {
  createSurrogateJoiner,
  maxMessageState,
  maxStateDepth,
  type StateFields,
  type StateSize,
  type SurrogateJoiner,
  sizeOfState,
} from "../domain/provider-state.ts";
import { forbiddenKeys } from "../kernel/json-guard.ts";
import { JsonScan } from "../kernel/measure-json.ts";
import { hasMoreValues, isShallow, jsonBytes, returnableJson } from "../kernel/returnable-json.ts";
import { endsInHalf } from "../kernel/surrogates.ts";

type TextDelta = Extract<
  CompletionEvent,
  { type: "text-delta" | "reasoning-delta" | "refusal-delta" }
>;
type State = Extract<CompletionEvent, { type: "state" }>;
type CallStarted = Extract<CompletionEvent, { type: "tool-call-started" }>;
type Embedding = Extract<CompletionEvent, { type: "embedding" }>;
type AnswerLimits = Pick<
  Limits,
  "depth" | "keys" | "values" | "tools" | "answerParts" | "answerBytes" | "upstreamBytes"
>;

/**
 * Checks and repairs an attempt's events before anything else reads them. Text becomes well-formed. An answer that no
 * client could send back ends as the provider's failure.
 */
export class AnswerIntake {
  readonly #limits: AnswerLimits;
  readonly #bounds: AnswerBounds;
  readonly #halves: EventSanitizer;
  #failure: ProviderError | null = null;

  /**
   * `isKept` means that the whole answer, with log probabilities, is written at its end: as one body or as a stored response.
   */
  constructor(limits: AnswerLimits, isKept: boolean) {
    this.#limits = limits;
    this.#bounds = new AnswerBounds(limits, isKept);
    this.#halves = new EventSanitizer(limits);
  }

  /** Returns the events to pass on: all of them, or those before the first one that exceeds a limit. */
  take(events: readonly CompletionEvent[]): readonly CompletionEvent[] {
    // Almost all events pass unchanged, so the list is only copied when one doesn't.
    let taken: CompletionEvent[] | null = null;
    let at = -1;
    for (const event of events) {
      at++;
      this.#failure ??= this.#bounds.excess(event);
      if (this.#failure !== null) return taken ?? events.slice(0, at);
      if (taken === null && this.#halves.passes(event)) continue;
      taken ??= events.slice(0, at);
      this.#halves.add(event, taken);
    }
    return taken ?? events;
  }

  /** The reason to stop, given the output and state so far; null while the answer is within its limits. */
  failure(outputBytes: number, state: StateSize): ProviderError | null {
    if (outputBytes > this.#limits.answerBytes) this.#failure ??= beyond("answer_too_large");
    if (isTooMuchState(state)) this.#failure ??= beyond("too_much_state");
    return this.#failure;
  }
}

/** Counts parts and tool calls as `CompletionFold` does for the same events. */
class AnswerBounds {
  readonly #limits: AnswerLimits;
  readonly #isKept: boolean;
  #logprobBytes = 0;
  #shownBytes = 0;
  #vectorBytes = 0;
  #embedded: Set<number> | null = null;
  #speaking: TextDelta["type"] | null = null;
  #parts = 0;
  // Most answers have no tool calls.
  #calls: CallBounds | null = null;

  constructor(limits: AnswerLimits, isKept: boolean) {
    this.#limits = limits;
    this.#isKept = isKept;
  }

  excess(event: CompletionEvent): ProviderError | null {
    const { depth, answerBytes } = this.#limits;
    switch (event.type) {
      case "text-delta":
      case "reasoning-delta":
      case "refusal-delta":
        return event.text === "" || this.#speaking === event.type ? null : this.#begin(event.type);
      case "tool-call-started":
        this.#calls ??= new CallBounds(this.#limits);
        return this.#calls.begin(event) ?? this.#begin(null);
      case "tool-call-delta":
        return this.#calls?.add(event.index, event.arguments) ?? null;
      case "logprobs":
        if (!isShallow(event.logprobs, depth)) return beyond("too_deep");
        if (this.#isKept) this.#logprobBytes += jsonBytes(event.logprobs);
        return this.#logprobBytes > answerBytes ? beyond("too_many_logprobs") : null;
      case "state":
        if (!isShallow(event.fields, maxStateDepth + 1)) return beyond("too_deep");
        return isTooMuchAtOnce(event.fields) ? beyond("too_much_state") : null;
      case "shown":
        if (!event.entries.every((entry) => isShallow(entry, maxStateDepth)))
          return beyond("too_deep");
        for (const entry of event.entries) this.#shownBytes += jsonBytes(entry);
        return this.#shownBytes > 2 * answerBytes ? beyond("answer_too_large") : null;
      case "embedding":
        return this.#addVector(event);
      default:
        return null;
    }
  }

  #begin(type: TextDelta["type"] | null): ProviderError | null {
    this.#speaking = type;
    return ++this.#parts > this.#limits.answerParts ? beyond("too_many_parts") : null;
  }

  #addVector({ index, vector }: Embedding): ProviderError | null {
    this.#vectorBytes += sizeOfVector(vector);
    if (this.#vectorBytes > this.#limits.upstreamBytes) return beyond("answer_too_large");
    this.#embedded ??= new Set();
    if (this.#embedded.has(index) || !isVector(vector))
      return invalid(
        "The provider's answer has an embedding that is not a vector, or two for one input.",
      );
    this.#embedded.add(index);
    return null;
  }
}

/** Checks that clients can send one answer's tool calls back. */
class CallBounds {
  readonly #limits: AnswerLimits;
  readonly #scans = new Map<number, JsonScan>();
  #begun = 0;
  #labelLength = 0;
  #values = 0;

  constructor(limits: AnswerLimits) {
    this.#limits = limits;
  }

  begin({ index, id, name }: CallStarted): ProviderError | null {
    if (id === "" || name === "")
      return invalid("The provider's answer has a tool call without an id or a name.");
    this.#labelLength += id.length + name.length;
    const isLong = Math.max(id.length, name.length) > maxCallLabelLength;
    if (isLong || this.#labelLength > this.#limits.answerBytes) return beyond("answer_too_large");
    if (++this.#begun > this.#limits.tools) return beyond("too_many_tool_calls");
    this.#scans.set(index, this.#scans.get(index) ?? new JsonScan());
    return null;
  }

  /** Some clients send arguments back as JSON in a body, which has these bounds. */
  add(index: number, piece: string): ProviderError | null {
    const scan = this.#scans.get(index);
    if (!scan) return null;
    this.#values += scan.add(piece);
    if (scan.deepest > this.#limits.depth) return beyond("too_deep");
    return this.#values > this.#limits.values / 2 ? beyond("too_many_values") : null;
  }
}

function isTooMuchState({ values, bytes, sealedTexts }: StateSize): boolean {
  return (
    values > maxMessageState.values ||
    bytes > maxMessageState.bytes ||
    sealedTexts > maxMessageState.sealedTexts
  );
}

/** Whether one event has too much state to be sealed. Few events have many values, and only those are measured. */
function isTooMuchAtOnce(fields: StateFields): boolean {
  const { values, sealedTexts } = maxMessageState;
  if (!hasMoreValues(fields, sealedTexts)) return false;
  return hasMoreValues(fields, values) || sizeOfState(fields).sealedTexts > sealedTexts;
}

const bytesPerNumber = Float64Array.BYTES_PER_ELEMENT;

function sizeOfVector(vector: EmbeddingVector): number {
  return typeof vector === "string" ? vector.length : vector.length * bytesPerNumber;
}

function invalid(message: string, reason = "invalid_answer"): ProviderError {
  return new ProviderError(message, { reason, delivery: "unknown", status: 200 });
}

function beyond(reason: string): ProviderError {
  return invalid("The provider's answer is larger than allowed.", reason);
}

/**
 * Joins surrogate pairs that are split between two deltas of a part. An unpaired half becomes U+FFFD before the next part
 * begins or the answer finishes.
 */
class EventSanitizer {
  readonly #keys: number;
  #waiting: TextDelta | null = null;
  // Most answers have neither tool calls nor state.
  /** The unsent end of each call's arguments. A plain answer can't show a call that never began, so its events are dropped. */
  #ofCalls: Map<number, string> | null = null;
  /** One per tool call, and one for the message, which has no index. */
  #ofStates: Map<number | undefined, SurrogateJoiner> | null = null;

  constructor({ keys }: Pick<Limits, "keys">) {
    this.#keys = keys;
  }

  /** Whether `add` would only append the event unchanged. */
  passes(event: CompletionEvent): boolean {
    return (
      "text" in event && event.text !== "" && this.#waiting === null && event.text.isWellFormed()
    );
  }

  add(event: CompletionEvent, into: CompletionEvent[]): void {
    switch (event.type) {
      case "text-delta":
      case "reasoning-delta":
      case "refusal-delta":
        if (event.text !== "") this.#say(event, into);
        return;
      case "tool-call-started":
        this.#beginCall(event, into);
        return;
      case "tool-call-delta":
        this.#write(event.index, event.arguments, into);
        return;
      case "logprobs":
        into.push({ type: "logprobs", logprobs: returnableJson(event.logprobs, this.#keys) });
        return;
      case "shown":
        into.push({
          ...event,
          entries: event.entries.map((entry) => returnableJson(entry, this.#keys)),
        });
        return;
      case "state":
        if (event.index === undefined || this.#ofCalls?.has(event.index)) this.#keep(event, into);
        return;
      case "answer-started":
        into.push(wellFormedLabels(event));
        return;
      case "finish":
        this.#endAll(into);
        into.push(event);
        return;
      default:
        into.push(event);
    }
  }

  #endSpoken(into: CompletionEvent[]): void {
    if (this.#waiting !== null) into.push({ ...this.#waiting, text: replacement });
    this.#waiting = null;
  }

  #say(event: TextDelta, into: CompletionEvent[]): void {
    if (this.#waiting !== null && this.#waiting.type !== event.type) this.#endSpoken(into);
    const [whole, half] = joined(this.#waiting?.text ?? "", event.text);
    this.#waiting = half === "" ? null : { ...event, text: half };
    if (whole !== "") into.push({ ...event, text: whole });
  }

  #beginCall(event: CallStarted, into: CompletionEvent[]): void {
    this.#endSpoken(into);
    this.#ofCalls ??= new Map();
    this.#ofCalls.set(event.index, this.#ofCalls.get(event.index) ?? "");
    into.push({ ...event, id: event.id.toWellFormed(), name: event.name.toWellFormed() });
  }

  #write(index: number, text: string, into: CompletionEvent[]): void {
    const before = this.#ofCalls?.get(index);
    if (before === undefined) return;
    const [whole, rest] = joinedArguments(before, text);
    this.#ofCalls?.set(index, rest);
    if (whole !== "") into.push({ type: "tool-call-delta", index, arguments: whole });
  }

  #endAll(into: CompletionEvent[]): void {
    this.#endSpoken(into);
    for (const [index, rest] of this.#ofCalls ?? []) {
      const text = rest.toWellFormed().replace(half, escapedReplacement);
      if (text !== "") into.push({ type: "tool-call-delta", index, arguments: text });
    }
    this.#ofCalls = null;
    for (const [index, state] of this.#ofStates ?? []) {
      const fields = state.flush();
      if (fields !== null)
        this.#push({ type: "state", ...(index !== undefined && { index }), fields }, into);
    }
  }

  #keep(event: State, into: CompletionEvent[]): void {
    this.#ofStates ??= new Map();
    const state = this.#ofStates.get(event.index) ?? createSurrogateJoiner();
    this.#ofStates.set(event.index, state);
    this.#push({ ...event, fields: state.join(event.fields) }, into);
  }

  #push(event: State, into: CompletionEvent[]): void {
    into.push({ ...event, fields: returnableFields(event.fields, this.#keys) });
  }
}

const replacement = "\uFFFD";

/** Prepends a pending half to the text. Returns the well-formed text, and the new half at its end. */
function joined(before: string, text: string): readonly [whole: string, half: string] {
  if (before === "" && text.isWellFormed()) return [text, ""];
  const all = before + text;
  return endsInHalf(all)
    ? [all.slice(0, -1).toWellFormed(), all.slice(-1)]
    : [all.toWellFormed(), ""];
}

/** A pair is one match, even if the text ends within its second half. */
const escapes =
  /\\ud[89ab][\da-f]{2}(?:\\ud[c-f][\da-f]{2}|\\(?:u[\da-f]{0,3})?$)?|\\(?:u[\da-f]{0,4}|[^u])?/gi;
const half = /^\\u[dD][89a-fA-F][\da-fA-F]{2}/;
const pairLength = 12;
const escapedReplacement = "\\ufffd";

/** The same for arguments, in which halves may also be escapes: clients that parse arguments send such halves back. */
function joinedArguments(before: string, text: string): readonly [whole: string, rest: string] {
  const [all, rest] = joined(before, text);
  let last = "";
  const whole = all.replaceAll(escapes, (found, at: number) => {
    if (found.length === pairLength) return found;
    if (at + found.length < all.length) return found.replace(half, escapedReplacement);
    last = found;
    return "";
  });
  return [whole, last + rest];
}

/** Drops fields with forbidden names: a client may send the object itself back. */
function returnableFields(fields: StateFields, keys: number): StateFields {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => !forbiddenKeys.has(name))
      .map(([name, value]) => [name.toWellFormed(), returnableJson(value ?? null, keys)]),
  );
}

type AnswerStarted = Extract<CompletionEvent, { type: "answer-started" }>;

function wellFormedLabels(event: AnswerStarted): AnswerStarted {
  const { type, ...labels } = event;
  if (Object.values(labels).every((label) => label.isWellFormed())) return event;
  const wellFormed = Object.entries(labels).map(
    ([name, label]) => [name, label.toWellFormed()] as const,
  );
  return { type, ...Object.fromEntries<string>(wellFormed) };
}
