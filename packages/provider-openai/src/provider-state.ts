import type {
  CompletionEvent,
  FunctionTool,
  Json,
  Message,
  ProviderState,
  StateFields,
} from "@tollgate/core/provider";
import { isList, isObject, type JsonObject } from "./json.ts";

/** What upstreams put into a message, next to its text, and want back with it. */
const messageFields = [
  "reasoning_details",
  "thinking_blocks",
  "provider_specific_fields",
  "extra_content",
] as const;

/** What upstreams put into a tool call and want back with it. */
const callFields = ["extra_content", "provider_specific_fields"] as const;

/** Adds the state that a delta, or a whole message, brings. */
export function addMessageState(delta: JsonObject, into: CompletionEvent[]): void {
  const fields = pickFields(delta, messageFields);
  if (fields) into.push({ type: "state", fields });
}

/** The state that a fragment of a tool call brings; null for none. */
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

/** Upstreams fill what they do not use with null and with empty lists and objects. */
function isEmpty(value: Json): boolean {
  if (isList(value)) return value.length === 0;
  return !isObject(value) || Object.keys(value).length === 0;
}

/** A message with its state where the upstream reads it: among the members of what it belongs to. */
export function withState(message: Message): object {
  const { state, ...rest } = message;
  if (rest.role === "assistant") {
    const { tool_calls, content } = rest;
    return {
      ...state?.fields,
      ...rest,
      ...(typeof content === "object" && content !== null
        ? { content: content.map(withPartState) }
        : {}),
      ...(tool_calls === undefined ? {} : { tool_calls: tool_calls.map(withPartState) }),
    };
  }
  const { content } = rest;
  return {
    ...state?.fields,
    ...rest,
    ...(typeof content === "string" ? {} : { content: content.map(withPartState) }),
  };
}

/** The state of a tool, as members of the tool itself. */
export function toolState({ state }: FunctionTool): StateFields {
  return state?.fields ?? {};
}

/** What belongs to the message keeps its name, whatever names its state has. */
function withPartState<Part extends object>(
  part: Part & { readonly state?: ProviderState },
): object {
  if (part.state === undefined) return part;
  const { state, ...rest } = part;
  return { ...state.fields, ...rest };
}
