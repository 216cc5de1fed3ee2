import type {
  CompletionEvent,
  FunctionTool,
  Json,
  Message,
  ProviderState,
  StateFields,
} from "@tollgate/core/provider";
import { isList, isObject, type JsonObject } from "@tollgate/provider-http";

/** Fields of a message that upstreams expect back with it. */
const messageFields = [
  "reasoning_details",
  "thinking_blocks",
  "provider_specific_fields",
  "extra_content",
] as const;

/** Marks of a tool that some upstreams cache up to. */
const breakpoints: ReadonlySet<string> = new Set(["cache_control", "prompt_cache_breakpoint"]);

/** Fields of a tool call that upstreams expect back with it. */
const callFields = ["extra_content", "provider_specific_fields"] as const;

/** Adds the state in a delta or in a whole message. */
export function addMessageState(delta: JsonObject, into: CompletionEvent[]): void {
  const fields = pickFields(delta, messageFields);
  if (fields) into.push({ type: "state", fields });
}

/** Returns the state in a fragment of a tool call, or null. */
export function callState(fragment: JsonObject): StateFields | null {
  return pickFields(fragment, callFields);
}

function pickFields(from: JsonObject, names: readonly string[]): StateFields | null {
  let fields: Record<string, Json> | null = null;
  for (const name of names) {
    const value = from[name];
    if (value === undefined || isEmpty(value)) continue;
    fields ??= {};
    fields[name] = value;
  }
  return fields;
}

/** Upstreams fill unused fields with null, empty lists and empty objects. */
function isEmpty(value: Json): boolean {
  if (isList(value)) return value.length === 0;
  return !isObject(value) || Object.keys(value).length === 0;
}

/** Writes the state of a message and its parts where the upstream expects it: in the members of each. */
export function withState(message: Message): object {
  const { state, ...rest } = message;
  if (rest.role === "assistant") {
    const { tool_calls, content } = rest;
    return {
      ...withoutPlaces(state?.fields),
      ...rest,
      ...(typeof content === "object" && content !== null
        ? { content: content.map(withPartState) }
        : {}),
      ...(tool_calls === undefined ? {} : { tool_calls: tool_calls.map(withPartState) }),
    };
  }
  const { content, ...named } = chatMembers(rest);
  return {
    ...state?.fields,
    ...named,
    content,
    ...(typeof content === "string" ? {} : { content: content.map(withPartState) }),
  };
}

/** Thinking blocks without their places among the parts of the answer, which upstreams don't know. */
function withoutPlaces(fields: StateFields | undefined): StateFields | undefined {
  const { thinking_blocks: blocks } = fields ?? {};
  if (blocks === undefined || !isList(blocks)) return fields;
  const plain = blocks.map((block): Json => {
    if (!isObject(block)) return block;
    const { index: _, ...kept } = block;
    return kept;
  });
  return { ...fields, thinking_blocks: plain };
}

type Asked = Exclude<Message, { role: "assistant" }>;

/** Leaves out what Chat Completions has no place for. */
function chatMembers(message: Asked): Asked {
  if (message.role === "tool") {
    const { is_error: _, ...result } = message;
    return result;
  }
  if (message.role !== "user") return message;
  const { sameTurn: _, ...said } = message;
  return said;
}

/** Returns the cache breakpoints of a tool, as members of the tool. */
export function toolState({ state }: FunctionTool): StateFields {
  return Object.fromEntries(
    Object.entries(state?.fields ?? {}).filter(([name]) => breakpoints.has(name)),
  );
}

/** The part's own members take precedence over state of the same name. */
function withPartState<Part extends object>(
  part: Part & { readonly state?: ProviderState },
): object {
  if (part.state === undefined) return part;
  const { state, ...rest } = part;
  return { ...state.fields, ...rest };
}
