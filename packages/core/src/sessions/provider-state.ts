import type { StateNeeds } from "../contracts/provider.ts";
import { type Completion, messageFields } from "../domain/completion.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import {
  type AssistantMessage,
  type Message,
  type ProviderState,
  startsTurn,
  type ToolCall,
} from "../domain/message.ts";
import {
  breakpointFields,
  noDroppedFields,
  reasoningTextFields,
  type StateFields,
} from "../domain/provider-state.ts";
import type { DroppedFields } from "../domain/step.ts";
import { isList, isObject, type Json } from "../kernel/stable-json.ts";
import { canonicalMessage } from "./canonical-message.ts";
import { isSealed, mapOpaque, type StateSeal, sealFields } from "./state-seal.ts";

/** Counts a dropped field by its name. */
export type NoteDropped = (name: string) => void;

/** Starts to count dropped fields. */
export function countDropped(): { readonly note: NoteDropped; counts(): DroppedFields } {
  let counts: Map<string, number> | null = null;
  return {
    note(name) {
      counts ??= new Map();
      counts.set(name, (counts.get(name) ?? 0) + 1);
    },
    counts: () => (counts === null ? noDroppedFields : Object.fromEntries(counts)),
  };
}

/** Adds up dropped fields. Clients choose the names, which can equal those of an object's own methods. */
export function addDropped(...all: readonly DroppedFields[]): DroppedFields {
  if (all.every((counts) => counts === noDroppedFields)) return noDroppedFields;
  const sum = new Map<string, number>();
  for (const [name, count] of all.flatMap((counts) => Object.entries(counts)))
    sum.set(name, (sum.get(name) ?? 0) + count);
  return Object.fromEntries(sum);
}

/** How many sealed texts of one request are opened: far more than an answer has, and few enough not to take long. */
const maxOpened = 4_096;

/**
 * The messages of a request, with the client's copy of their state unsealed. Sealed texts come from a provider and go back
 * only to it. Opaque texts that were not sealed for this key are dropped, and so are those beyond 4,096. The latest
 * messages come first, because their state matters most.
 */
export function unsealState(
  messages: readonly Message[],
  seal: StateSeal,
  drop: NoteDropped,
): readonly Message[] {
  if (!messages.some(hasClientState)) return messages;
  let left = maxOpened;
  const opening: StateSeal = {
    ...seal,
    open: (text) => (isSealed(text) && left-- > 0 ? seal.open(text) : null),
  };
  return messages
    .toReversed()
    .map((message) => (hasClientState(message) ? unsealMessage(message, opening, drop) : message))
    .toReversed();
}

/** Whether the state of a message may come from the client. State with an origin comes from the store. */
function hasClientState(message: Message): message is AssistantMessage {
  if (message.role !== "assistant") return false;
  const { state, tool_calls } = message;
  return state?.from === null || (tool_calls?.some((call) => call.state?.from === null) ?? false);
}

function unsealMessage(
  message: AssistantMessage,
  seal: StateSeal,
  drop: NoteDropped,
): AssistantMessage {
  const { reasoning_items, ...fields } = message.state?.fields ?? {};
  const items = unsealItems(reasoning_items, seal, drop);
  const own = unsealFields(fields, seal, drop);
  const state = items.message ?? stateOf(own.from, { ...items.plain, ...own.fields });
  const breakpoints = pick(own.fields, (name) => breakpointFields.has(name));
  const calls = message.tool_calls?.map((call) => unsealCall(call, items.calls, seal, drop));
  return withStates(message, {
    state: state && { ...state, fields: { ...state.fields, ...breakpoints } },
    calls,
  });
}

function unsealCall(
  call: ToolCall,
  known: ReadonlyMap<string, ProviderState>,
  seal: StateSeal,
  drop: NoteDropped,
): ToolCall {
  const { state, ...plain } = call;
  const own = state && unsealFields(state.fields, seal, drop);
  const kept = known.get(call.id) ?? (own && stateOf(own.from, own.fields));
  return kept === undefined ? plain : { ...plain, state: kept };
}

/** Unseals fields whose sealed texts all have the same origin, which then applies to all fields. */
function unsealFields(fields: StateFields, seal: StateSeal, drop: NoteDropped): ProviderState {
  let from: string | null = null;
  const replace = (text: string): string | null => {
    const unsealed = seal.open(text);
    if (unsealed === null || (from !== null && from !== unsealed.origin)) return null;
    from = unsealed.origin;
    return unsealed.original;
  };
  const kept: Record<string, Json> = {};
  for (const [name, value] of Object.entries(fields)) {
    const read = breakpointFields.has(name) ? value : mapOpaque(name, value, replace);
    if (read === undefined) drop(name);
    else kept[name] = read;
  }
  return { from, fields: kept };
}

/** The content of Responses reasoning items: their sealed state, otherwise the plain text of their summaries. */
interface UnsealedItems {
  readonly message: ProviderState | undefined;
  readonly calls: ReadonlyMap<string, ProviderState>;
  readonly plain: StateFields;
}

function unsealItems(items: Json | undefined, seal: StateSeal, drop: NoteDropped): UnsealedItems {
  const calls = new Map<string, ProviderState>();
  const texts: string[] = [];
  let message: ProviderState | undefined;
  for (const item of isList(items) ? items : []) {
    if (!isObject(item)) continue;
    const sealed = item["encrypted_content"];
    if (typeof sealed !== "string") {
      texts.push(...summaryOf(item["summary"]));
      continue;
    }
    const held = unsealBundle(sealed, seal);
    if (held === null) drop("encrypted_content");
    else {
      message ??= stateOf(held.origin, held.bundle.message);
      for (const { id, fields } of held.bundle.calls) calls.set(id, { from: held.origin, fields });
    }
  }
  return {
    message,
    calls,
    plain: texts.length === 0 ? {} : { reasoning_content: texts.join("\n") },
  };
}

/** All state of one answer: of its message and of its tool calls, by their ids. */
interface Bundle {
  readonly message: StateFields;
  readonly calls: readonly { readonly id: string; readonly fields: StateFields }[];
}

/** Comes before a bundle's origin. No gateway's name begins with it, so a provider's sealed text is never read as a bundle. */
const bundleMark = "*";

/** All state of an answer as one sealed text, for formats that can carry only text. Null if there is none. */
export function sealBundle(completion: Completion, origin: string, seal: StateSeal): string | null {
  const message = messageFields(completion);
  const calls = completion.parts.flatMap((part) =>
    part.type === "tool-call" && part.fields ? { id: part.call.id, fields: part.fields } : [],
  );
  if (Object.keys(message).length === 0 && calls.length === 0) return null;
  return seal.seal(`${bundleMark}${origin}`, JSON.stringify({ message, calls } satisfies Bundle));
}

/** An answer as the client may see it, with state that only the provider can read sealed. */
export function sealCompletion(
  completion: Completion,
  origin: string,
  seal: StateSeal,
): Completion {
  const { fields, parts } = completion;
  if (fields === undefined && !parts.some((part) => part.type === "tool-call" && part.fields))
    return completion;
  return {
    ...completion,
    parts: parts.map((part) =>
      part.type === "tool-call" && part.fields
        ? { ...part, fields: sealFields(seal, origin, part.fields) }
        : part,
    ),
    ...(fields === undefined ? {} : { fields: sealFields(seal, origin, fields) }),
  };
}

function unsealBundle(
  text: string,
  seal: StateSeal,
): { readonly origin: string; readonly bundle: Bundle } | null {
  const held = seal.open(text);
  if (!held?.origin.startsWith(bundleMark)) return null;
  const bundle: Bundle = JSON.parse(held.original);
  return { origin: held.origin.slice(bundleMark.length), bundle };
}

/**
 * Restores the state that was recorded with messages, if the recorded message equals the client's. It replaces the client's
 * copy, which may be incomplete if the client joined a stream. Maps each replaced message to its replacement.
 */
export function restoreState(
  requested: readonly { readonly message: Message; readonly recorded: Message | undefined }[],
): ReadonlyMap<Message, Message> {
  const restored = new Map<Message, Message>();
  for (const { message, recorded } of requested) {
    if (message.role !== "assistant" || recorded?.role !== "assistant") continue;
    if (!isRecorded(recorded) || canonicalMessage(message) !== canonicalMessage(recorded)) continue;
    const calls = message.tool_calls?.map((call, at) =>
      withState(call, joined(call.state, recorded.tool_calls?.[at]?.state)),
    );
    const state = joined(message.state, recorded.state);
    restored.set(message, withStates(message, { state, calls }));
  }
  return restored;
}

function isRecorded({ state, tool_calls = [] }: AssistantMessage): boolean {
  return [state, ...tool_calls.map((call) => call.state)].some(
    (held) => held && held.from !== null && held.omittedBytes === undefined,
  );
}

/** The recorded state, with the breakpoints of the current request. */
function joined(
  given: ProviderState | undefined,
  recorded: ProviderState | undefined,
): ProviderState | undefined {
  if (!recorded || recorded.from === null) return given;
  const breakpoints = pick(given?.fields ?? {}, (name) => breakpointFields.has(name));
  const own = pick(recorded.fields, (name) => !breakpointFields.has(name));
  return { from: recorded.from, fields: { ...own, ...breakpoints } };
}

/** The destination of a request, and the state that it accepts. */
export interface StateTarget {
  /** `<gateway>/<vendor>`. */
  readonly origin: string;
  readonly needs: StateNeeds;
  /** Messages whose state the client did not send with this request. */
  readonly restored: ReadonlySet<Message>;
}

/** The request as one provider may see it: only with state that it issued, and with fields that the client added for it. */
export function requestFor(
  request: CompletionRequest,
  target: StateTarget,
  drop: NoteDropped,
): CompletionRequest {
  const { messages, tools } = request;
  const isPlain = !messages.some(carriesState) && !tools?.some(({ state }) => state !== undefined);
  if (isPlain) return request;
  const lastUser = messages.findLastIndex(startsTurn);
  const sent = messages.map((message, at) => {
    if (!carriesState(message)) return message;
    const isEarlier = at < lastUser;
    const isLeftOut = isEarlier && target.needs.restore !== "history";
    return filtered(message, (state) =>
      stateFor(state, target, {
        isForgotten: isLeftOut && target.restored.has(message),
        takesText: !isLeftOut,
        drop,
      }),
    );
  });
  const offered = tools?.map((tool) => {
    if (tool.state === undefined || target.needs.cacheBreakpoints) return tool;
    for (const name of Object.keys(tool.state.fields)) drop(name);
    return withState(tool, undefined);
  });
  return { ...request, messages: sent, ...(offered === undefined ? {} : { tools: offered }) };
}

function stateFor(
  { from, fields }: ProviderState,
  { origin, needs }: StateTarget,
  {
    isForgotten,
    takesText,
    drop,
  }: { readonly isForgotten: boolean; readonly takesText: boolean; readonly drop: NoteDropped },
): ProviderState | undefined {
  const isWelcome = from === null ? needs.reasoningText === "always" && takesText : from === origin;
  const isTaken = (name: string): boolean => {
    if (breakpointFields.has(name)) return needs.cacheBreakpoints;
    return isWelcome && !(reasoningTextFields.has(name) && needs.reasoningText === "never");
  };
  const kept = pick(fields, (name) => {
    if (isForgotten && !breakpointFields.has(name)) return false;
    const taken = isTaken(name);
    if (!taken) drop(name);
    return taken;
  });
  return stateOf(from, kept);
}

function carriesState(message: Message): boolean {
  if (message.state) return true;
  if (message.role === "assistant" && message.tool_calls?.some(({ state }) => state)) return true;
  const { content } = message;
  return Array.isArray(content) && content.some((part) => "state" in part);
}

type Keep = (state: ProviderState) => ProviderState | undefined;

function filtered(message: Message, keep: Keep): Message {
  const part = <Part extends Stated>(given: Part): Part =>
    given.state === undefined ? given : withState(given, keep(given.state));
  switch (message.role) {
    case "assistant": {
      const { content, tool_calls: calls } = message;
      return {
        ...part(message),
        ...(typeof content === "object" && content !== null ? { content: content.map(part) } : {}),
        ...(calls === undefined ? {} : { tool_calls: calls.map(part) }),
      };
    }
    case "user":
    case "tool":
      return typeof message.content === "string"
        ? part(message)
        : { ...part(message), content: message.content.map(part) };
    default:
      return typeof message.content === "string"
        ? part(message)
        : { ...part(message), content: message.content.map(part) };
  }
}

interface Stated {
  readonly state?: ProviderState;
}

function withState<Carrier extends Stated>(
  carrier: Carrier,
  state: ProviderState | undefined,
): Carrier {
  if (state !== undefined) return { ...carrier, state };
  const copy = { ...carrier };
  Reflect.deleteProperty(copy, "state");
  return copy;
}

function withStates(
  message: AssistantMessage,
  {
    state,
    calls,
  }: {
    readonly state: ProviderState | undefined;
    readonly calls: readonly ToolCall[] | undefined;
  },
): AssistantMessage {
  return { ...withState(message, state), ...(calls === undefined ? {} : { tool_calls: calls }) };
}

function stateOf(from: string | null, fields: StateFields): ProviderState | undefined {
  return Object.keys(fields).length === 0 ? undefined : { from, fields };
}

function pick(fields: StateFields, isKept: (name: string) => boolean): StateFields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => isKept(name)));
}

function summaryOf(summary: Json | undefined): readonly string[] {
  if (!isList(summary)) return [];
  return summary.flatMap((part) =>
    isObject(part) && typeof part["text"] === "string" ? part["text"] : [],
  );
}
