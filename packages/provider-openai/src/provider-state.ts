import type {
  CompletionEvent,
  FunctionTool,
  Json,
  Message,
  ProviderState,
  StateFields,
} from "@tollgate/core/provider";
import { isList, isObject, type JsonObject } from "./json.ts";

/** Fields of a message that upstreams expect back with it. */
const messageFields = [
  "reasoning_details",
  "thinking_blocks",
  "provider_specific_fields",
  "extra_content",
] as const;

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

/** Returns the state of a tool, as members of the tool. */
export function toolState({ state }: FunctionTool): StateFields {
  return state?.fields ?? {};
}

/** The part's own members take precedence over state of the same name. */
function withPartState<Part extends object>(
  part: Part & { readonly state?: ProviderState },
): object {
  if (part.state === undefined) return part;
  const { state, ...rest } = part;
  return { ...state.fields, ...rest };
}
