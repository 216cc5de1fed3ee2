import { type Completion, spoken, toolCallsOf } from "../../domain/completion.ts";
import type { Usage } from "../../domain/usage.ts";
import type { Json } from "../../kernel/stable-json.ts";
import type { ChatCompletionHead } from "./head.ts";
import { usageObject } from "./usage-object.ts";

/** The chat completion object of section 2.2, as JSON text. */
export function chatCompletionBody(
  head: ChatCompletionHead,
  completion: Completion,
  usage: Usage,
): string {
  return JSON.stringify({
    id: head.id,
    object: "chat.completion",
    created: head.created,
    model: head.model,
    choices: [
      {
        index: 0,
        message: messageObject(completion),
        logprobs: joinLogprobs(completion.logprobs),
        finish_reason: completion.finishReason,
      },
    ],
    usage: usageObject(usage),
    session_id: head.sessionId,
    turn_id: head.turnId,
  });
}

function messageObject(completion: Completion): object {
  const reasoning = spoken(completion, "reasoning");
  const toolCalls = toolCallsOf(completion);
  return {
    role: "assistant",
    content: spoken(completion, "text"),
    refusal: spoken(completion, "refusal"),
    ...(reasoning === null ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  };
}

/** Log probabilities come in pieces while the model writes; the body has each list whole. */
function joinLogprobs(pieces: readonly Json[]): Json {
  if (pieces.length === 0) return null;
  return { content: joinLists(pieces, "content"), refusal: joinLists(pieces, "refusal") };
}

function joinLists(pieces: readonly Json[], name: string): Json {
  const joined = pieces.flatMap((piece) => {
    const list = isObject(piece) ? piece[name] : null;
    return Array.isArray(list) ? list : [];
  });
  return joined.length === 0 ? null : joined;
}

function isObject(value: Json): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
