import { type Completion, textOfKind } from "../../domain/completion.ts";
import type { ReasoningField } from "../../domain/completion-event.ts";
import type { Usage } from "../../domain/usage.ts";
import { isObject, type Json } from "../../kernel/stable-json.ts";
import type { ChatCompletionHead } from "./head.ts";
import { usageObject } from "./usage-object.ts";

/** The chat completion object of section 2.2, as JSON text. */
export function chatCompletionBody(
  head: ChatCompletionHead,
  completion: Completion,
  usage: Usage,
): string {
  const { serviceTier } = completion.usage;
  return JSON.stringify({
    id: head.id,
    object: "chat.completion",
    created: head.created,
    model: head.model,
    system_fingerprint: head.systemFingerprint(),
    choices: [
      {
        index: 0,
        message: messageObject(completion),
        logprobs: joinLogprobs(completion.logprobs),
        finish_reason: completion.finishReason,
      },
    ],
    usage: usageObject(usage),
    ...(serviceTier === undefined ? {} : { service_tier: serviceTier }),
    session_id: head.sessionId,
    turn_id: head.turnId,
  });
}

function messageObject(completion: Completion): object {
  const toolCalls = completion.parts.flatMap((part) =>
    part.type === "tool-call" ? { ...part.fields, ...part.call } : [],
  );
  const refusal = textOfKind(completion, "refusal");
  // An answer without anything else has an empty text, as its chunks have.
  const nothing = refusal === null && toolCalls.length === 0 ? "" : null;
  return {
    ...completion.fields,
    ...completion.shown,
    role: "assistant",
    content: textOfKind(completion, "text") ?? nothing,
    refusal,
    ...reasoningOf(completion),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  };
}

/** Reasoning is shown under the name that the provider used. */
function reasoningOf({ parts }: Completion): Partial<Record<ReasoningField, string>> {
  const reasoning: Partial<Record<ReasoningField, string>> = {};
  for (const part of parts) {
    if (part.type !== "reasoning") continue;
    const { field = "reasoning_content", text } = part;
    reasoning[field] = (reasoning[field] ?? "") + text;
  }
  return reasoning;
}

/** Joins the log probabilities, which arrive in pieces: the body has each list whole. */
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
