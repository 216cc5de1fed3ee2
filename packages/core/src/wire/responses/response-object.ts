import type { Completion } from "../../domain/completion.ts";
import type { FinishReason } from "../../domain/completion-event.ts";
import type { Usage } from "../../domain/usage.ts";
import type { GatewayError } from "../../errors/gateway-error.ts";
import type { ResponseEcho } from "./echo.ts";
import type { StoredItem } from "./items.ts";
import type { Namespaces } from "./namespaces.ts";
import { outputItems } from "./output-items.ts";
import { responseError } from "./response-error.ts";

/** The members of a response that are known before its answer. */
export interface ResponseHead {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly model: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly previousResponseId: string | null;
  readonly store: boolean;
  readonly echo: ResponseEcho;
  readonly namespaces: Namespaces;
}

/** The progress of a response. Times are milliseconds since the epoch. */
export type ResponseState =
  | { readonly status: "in_progress" }
  | {
      readonly status: "answered";
      readonly output: readonly StoredItem[];
      readonly usage: Usage;
      readonly finishReason: FinishReason;
      /** Undefined if the provider reported none. */
      readonly serviceTier: string | undefined;
      readonly completedAt: number;
    }
  | {
      readonly status: "failed";
      readonly output: readonly StoredItem[];
      readonly error: GatewayError;
    };

/** The finished response object, as JSON text. */
export function responseBody(
  head: ResponseHead,
  completion: Completion,
  usage: Usage,
  finishReason: FinishReason,
  completedAt: number,
): string {
  const output = outputItems(completion, head.id, head.namespaces);
  const { serviceTier } = completion.usage;
  const answered = { output, usage, finishReason, serviceTier, completedAt };
  const state = { status: "answered", ...answered } as const;
  return JSON.stringify(responseObject(head, state));
}

/** The response object. Every field is present in every state. */
export function responseObject(head: ResponseHead, state: ResponseState): object {
  const { echo } = head;
  const answered = state.status === "answered" ? state : null;
  const reason = answered && incompleteReason(answered.finishReason);
  return {
    id: head.id,
    object: "response",
    created_at: seconds(head.createdAt),
    completed_at: answered && reason === null ? seconds(answered.completedAt) : null,
    status: answered ? outcomeOf(answered.finishReason) : state.status,
    background: false,
    error: state.status === "failed" ? responseError(state.error) : null,
    incomplete_details: reason === null ? null : { reason },
    instructions: echo.instructions,
    max_output_tokens: echo.max_output_tokens,
    max_tool_calls: null,
    model: head.model,
    output: state.status === "in_progress" ? [] : state.output,
    parallel_tool_calls: echo.parallel_tool_calls,
    previous_response_id: head.previousResponseId,
    prompt_cache_key: echo.prompt_cache_key,
    reasoning: echo.reasoning,
    safety_identifier: echo.safety_identifier,
    service_tier: answered?.serviceTier ?? echo.service_tier,
    store: head.store,
    temperature: echo.temperature,
    text: echo.text,
    tool_choice: echo.tool_choice,
    tools: echo.tools,
    top_logprobs: echo.top_logprobs,
    top_p: echo.top_p,
    presence_penalty: echo.presence_penalty,
    frequency_penalty: echo.frequency_penalty,
    truncation: echo.truncation,
    usage: answered && usageObject(answered.usage),
    ...(echo.user === undefined ? {} : { user: echo.user }),
    metadata: echo.metadata,
    session_id: head.sessionId,
    turn_id: head.turnId,
  };
}

/** Whether the model finished its answer, or was stopped early. */
export function outcomeOf(finishReason: FinishReason): "completed" | "incomplete" {
  return incompleteReason(finishReason) === null ? "completed" : "incomplete";
}

function incompleteReason(
  finishReason: FinishReason,
): "max_output_tokens" | "content_filter" | null {
  if (finishReason === "length") return "max_output_tokens";
  return finishReason === "content_filter" ? "content_filter" : null;
}

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000);

/** Usage as responses show it. Unlike in Chat Completions, the details are always present. */
function usageObject(usage: Usage): object {
  return {
    input_tokens: usage.promptTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedTokens ?? 0,
      cache_write_tokens: usage.cacheWriteTokens ?? 0,
    },
    output_tokens: usage.completionTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: usage.totalTokens,
  };
}
