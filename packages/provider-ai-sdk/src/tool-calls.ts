import type { CompletionEvent } from "@tollgate/core/provider";
import { invalidAnswer } from "./failures.ts";
import type { Part } from "./model-call.ts";
import { extraContent, joinMetadata, type Metadata } from "./provider-state.ts";

type ToolPart = Extract<Part, { type: "tool-input-start" | "tool-input-delta" | "tool-call" }>;

interface Call {
  readonly index: number;
  /** Whether its pieces are JSON text. Otherwise its arguments arrive with the whole call. */
  readonly json: boolean;
  written: boolean;
  metadata: Metadata | undefined;
}

/** Assembles tool calls. Providers send them in pieces, whole, or both. */
export interface ToolCalls {
  add(part: ToolPart, into: CompletionEvent[]): void;
}

export function createToolCalls(): ToolCalls {
  const calls = new Map<string, Call>();

  const begin = (id: string, name: string, json: boolean, into: CompletionEvent[]): Call => {
    const known = calls.get(id);
    if (known) return known;
    if (id === "" || name === "")
      throw invalidAnswer("invalid_event", "The provider sent a tool call without id or name.");
    const call = { index: calls.size, json, written: false, metadata: undefined };
    calls.set(id, call);
    into.push({ type: "tool-call-started", index: call.index, id, name });
    return call;
  };
  const remember = (call: Call, more: Metadata | undefined, into: CompletionEvent[]): void => {
    if (more === undefined) return;
    call.metadata = joinMetadata(call.metadata, more) ?? more;
    into.push({ type: "state", index: call.index, fields: extraContent(call.metadata) });
  };
  const write = (call: Call, text: string, into: CompletionEvent[]): void => {
    if (text === "") return;
    call.written = true;
    into.push({ type: "tool-call-delta", index: call.index, arguments: text });
  };

  return {
    add(part, into) {
      // Tollgate never offers tools that the provider runs itself, and the client can't answer them.
      if ("providerExecuted" in part && part.providerExecuted) return;
      if (part.type === "tool-input-start") {
        const json = !("inputEncoding" in part && part.inputEncoding === "text");
        const call = begin(part.id, part.toolName, json, into);
        remember(call, part.providerMetadata, into);
      } else if (part.type === "tool-input-delta") {
        const call = calls.get(part.id);
        if (call?.json) write(call, part.delta, into);
      } else {
        const call = begin(part.toolCallId, part.toolName, true, into);
        remember(call, part.providerMetadata, into);
        if (!call.written) write(call, part.input, into);
      }
    },
  };
}
