import {
  type CompletionRequest,
  type FunctionTool,
  imagesAfterTools,
  type Message,
  type ResponseFormat,
  type ToolChoice,
} from "@tollgate/core/provider";
import { toolState, withState } from "./provider-state.ts";

/** How an upstream's dialect differs from the default. */
export interface RequestDialect {
  readonly maxTokensField: "max_completion_tokens" | "max_tokens";
  readonly developerRole: "developer" | "system";
  readonly forwardStore: boolean;
}

/** A request in the JSON of the Chat Completions API: only what was given, in a fixed order. */
export function requestBody(
  model: string,
  request: CompletionRequest,
  stream: boolean,
  dialect: RequestDialect,
): string {
  return JSON.stringify({
    model,
    messages: messages(request.messages, dialect.developerRole),
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...toolFields(request),
    response_format: request.responseFormat && responseFormat(request.responseFormat),
    reasoning_effort: request.reasoningEffort,
    verbosity: request.verbosity,
    temperature: request.temperature,
    top_p: request.topP,
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    seed: request.seed,
    logit_bias: request.logitBias,
    logprobs: request.logprobs,
    top_logprobs: request.topLogprobs,
    stop: request.stop,
    [dialect.maxTokensField]: request.maxOutputTokens,
    user: request.user,
    prompt_cache_key: request.promptCacheKey,
    safety_identifier: request.safetyIdentifier,
    service_tier: request.serviceTier,
    // `store` asks the upstream to keep a second transcript, and `metadata` labels it there; the gateway keeps its own.
    // Upstreams without storage refuse both, and the one that has it refuses metadata without store: together or not.
    ...(dialect.forwardStore ? { store: request.store, metadata: request.metadata } : {}),
  });
}

/** Upstreams refuse the choice of a tool, and parallel calls, where no tools are offered. */
function toolFields(request: CompletionRequest): object {
  if (request.tools === undefined || request.tools.length === 0) return {};
  return {
    tools: request.tools.map(tool),
    tool_choice: request.toolChoice && toolChoice(request.toolChoice),
    parallel_tool_calls: request.parallelToolCalls,
  };
}

function tool(given: FunctionTool): object {
  const { name, description, parameters, strict } = given;
  return {
    ...toolState(given),
    type: "function",
    function: { name, description, parameters, strict },
  };
}

function toolChoice(choice: ToolChoice): string | object {
  return typeof choice === "string"
    ? choice
    : { type: "function", function: { name: choice.name } };
}

function responseFormat(format: ResponseFormat): object {
  if (format.type !== "json_schema") return { type: format.type };
  const { name, description, schema, strict } = format;
  return { type: "json_schema", json_schema: { name, description, schema, strict } };
}

function messages(
  given: readonly Message[],
  developerRole: RequestDialect["developerRole"],
): readonly object[] {
  return imagesAfterTools(given).map((message) =>
    withState(
      message.role === "developer" && developerRole === "system"
        ? { ...message, role: developerRole }
        : message,
    ),
  );
}
