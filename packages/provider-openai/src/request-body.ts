import {
  type CompletionRequest,
  effortOf,
  type FunctionTool,
  imagesAfterTools,
  type Message,
  type ProviderCall,
  type ResponseFormat,
  type ToolChoice,
} from "@tollgate/core/provider";
import { createBodyWriter, type WriteRequest } from "@tollgate/provider-http";
import { toolState, withState } from "./provider-state.ts";

/** How an upstream's dialect differs from the default. */
export interface RequestDialect {
  readonly maxTokensField: "max_completion_tokens" | "max_tokens";
  readonly developerRole: "developer" | "system";
  readonly forwardStore: boolean;
}

type WrittenCall = Pick<ProviderCall, "upstreamName" | "request" | "stream" | "continues">;

/** Creates the writer of an upstream's requests. */
export function createRequestWriter(dialect: RequestDialect): WriteRequest<WrittenCall> {
  return createBodyWriter<WrittenCall>({
    start: ({ upstreamName }) => `{"model":${JSON.stringify(upstreamName)},"messages":[`,
    elements: (messages) => listElements(messages, dialect),
    end: ({ request, stream }) => suffixOf(request, stream, dialect),
    // The images of tool messages come after the last of them.
    isDivisible: (messages) => imagesAfterTools(messages) === messages,
  });
}

/** Writes messages as the elements of a JSON list. */
function listElements(given: readonly Message[], { developerRole }: RequestDialect): string {
  return JSON.stringify(sentMessages(given, developerRole)).slice(1, -1);
}

/** Writes the part after the messages: the fields of the request, in a fixed order. */
function suffixOf(request: CompletionRequest, stream: boolean, dialect: RequestDialect): string {
  const fields = JSON.stringify({
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...toolFields(request),
    response_format: request.responseFormat && responseFormat(request.responseFormat),
    reasoning_effort: effortOf(request),
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
    // `store` asks the upstream to keep its own transcript, and `metadata` labels it. Most upstreams reject both, and
    // OpenAI rejects `metadata` without `store`.
    ...(dialect.forwardStore ? storeFields(request) : {}),
  });
  return fields === "{}" ? "]}" : `],${fields.slice(1)}`;
}

function storeFields({ store, metadata }: CompletionRequest): object {
  return { store, ...(store === true ? { metadata } : {}) };
}

/** Upstreams reject `tool_choice` and `parallel_tool_calls` without tools. */
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

function sentMessages(
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
