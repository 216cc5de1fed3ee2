import { createHash, type Hash, hash } from "node:crypto";
import {
  type CompletionRequest,
  type FunctionTool,
  imagesAfterTools,
  type Message,
  type ProviderCall,
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

/** A serialized request. */
export interface WrittenRequest {
  readonly body: string | Buffer;
  /** The SHA-256 of the body in hex. */
  sha256(): string;
}

/** Serializes the requests of one provider. */
export type WriteRequest = (
  call: Pick<ProviderCall, "upstreamName" | "request" | "stream" | "continues">,
) => WrittenRequest;

/** A body up to the end of its messages, kept for the next request of the conversation. */
interface WrittenPrefix {
  readonly model: string;
  readonly text: Buffer;
  /** The running hash of the text. */
  readonly hash: Hash;
}

/** Serializing a shorter body again is cheaper than keeping it. */
const minPrefixBytes = 8_192;

/**
 * Serializes the messages of a growing conversation once: each body continues the bytes and the hash of the previous
 * one. The garbage collector frees them together with the list of messages.
 */
export function createRequestWriter(dialect: RequestDialect): WriteRequest {
  const prefixes = new WeakMap<readonly Message[], WrittenPrefix>();

  return ({ upstreamName: model, request, stream, continues = noMessages }) => {
    const { messages } = request;
    const suffix = suffixOf(request, stream, dialect);
    const prefix = prefixes.get(continues);
    const hasPrefix = prefix?.model === model && imagesAfterTools(messages) === messages;
    const added = hasPrefix
      ? afterComma(listElements(messages.slice(continues.length), dialect))
      : `${bodyStart(model)}${listElements(messages, dialect)}`;
    const before = hasPrefix ? prefix.text.length : 0;
    if (before + added.length < minPrefixBytes) {
      const body = `${added}${suffix}`;
      return { body, sha256: () => hash("sha256", body) };
    }
    const body = Buffer.concat([
      ...(hasPrefix ? [prefix.text] : []),
      Buffer.from(added),
      Buffer.from(suffix),
    ]);
    const prefixLength = body.length - Buffer.byteLength(suffix);
    return {
      body,
      sha256() {
        const digest = hasPrefix ? prefix.hash.copy() : createHash("sha256");
        digest.update(body.subarray(before, prefixLength));
        prefixes.set(messages, {
          model,
          text: body.subarray(0, prefixLength),
          hash: digest.copy(),
        });
        return digest.update(suffix).digest("hex");
      },
    };
  };
}

const noMessages: readonly Message[] = [];

function bodyStart(model: string): string {
  return `{"model":${JSON.stringify(model)},"messages":[`;
}

function afterComma(text: string): string {
  return text === "" ? "" : `,${text}`;
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
    // `store` asks the upstream to keep its own transcript, and `metadata` labels it. Most upstreams reject both, and
    // OpenAI rejects `metadata` without `store`, so they are sent together or not at all.
    ...(dialect.forwardStore ? { store: request.store, metadata: request.metadata } : {}),
  });
  return fields === "{}" ? "]}" : `],${fields.slice(1)}`;
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
