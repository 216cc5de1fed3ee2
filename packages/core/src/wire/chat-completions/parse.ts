import type { CompletionRequest } from "../../domain/completion-request.ts";
import type { Limits } from "../../domain/limits.ts";
import type { DroppedFields } from "../../domain/step.ts";
import { requestMembers } from "../common-fields.ts";
import { beginReading } from "../dropped-fields.ts";
import { type KnownItems, wrongValue } from "../read.ts";
import { toolUse } from "../tools.ts";
import { chatCompletion } from "./schema.ts";

/** A call of the Chat Completions endpoint: the request to the model, and the form of the answer. */
export interface ChatCompletionCall {
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly request: CompletionRequest;
  /** Members dropped from its messages and tools, and those dropped from its messages alone. */
  readonly droppedFields: DroppedFields;
  readonly droppedFromMessages: DroppedFields;
}

/**
 * Reads a parsed body (section 2.1) into a new call. Null members become absent. The call shares no objects with the body
 * except JSON Schemas and provider state.
 * @throws GatewayError with the code and the path of the first fault, in the order of the schema
 */
export function parseChatCompletion(
  body: unknown,
  limits: Limits,
  known: KnownItems = {},
): ChatCompletionCall {
  const { reading, dropped } = beginReading(limits, { known });
  const {
    model,
    stream,
    streamOptions,
    sessionId,
    turnId,
    tools,
    toolChoice,
    parallelToolCalls,
    maxTokens,
    maxCompletionTokens,
    reasoning,
    reasoningEffort = reasoning?.effort,
    ...rest
  } = chatCompletion(body, "", reading);
  if (reasoning?.effort !== undefined && reasoning.effort !== reasoningEffort)
    throw wrongValue("contradicts reasoning_effort: send only one of the two", "reasoning.effort");
  const maxOutputTokens = maxCompletionTokens ?? maxTokens;
  return {
    model,
    stream: stream ?? false,
    includeUsage: streamOptions?.include_usage ?? false,
    sessionId: sessionId ?? null,
    turnId: turnId ?? null,
    request: {
      ...requestMembers(rest),
      ...toolUse(
        { tools: tools ?? [], toolChoice, parallelToolCalls },
        "tool_choice.function.name",
      ),
      ...(reasoningEffort === undefined ? {} : { reasoningEffort }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    },
    droppedFields: dropped.all(),
    droppedFromMessages: dropped.ofConversation(),
  };
}
