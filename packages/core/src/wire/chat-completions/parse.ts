import type {
  CompletionRequest,
  FunctionTool,
  ToolChoice,
} from "../../domain/completion-request.ts";
import type { Limits } from "../../domain/limits.ts";
import { wrongValue } from "../read.ts";
import { chatCompletion } from "./schema.ts";

/** A call of the Chat Completions endpoint: what is asked of the model, and how it is to be answered. */
export interface ChatCompletionCall {
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly request: CompletionRequest;
}

/**
 * Reads a parsed body of section 2.1 into a new call: what is null is absent, and nothing of the client's own objects
 * remains but JSON Schemas.
 * @throws GatewayError with the code and the path of the first fault in the order of the schema
 */
export function parseChatCompletion(body: unknown, limits: Limits): ChatCompletionCall {
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
    ...rest
  } = chatCompletion(body, "", limits);
  const maxOutputTokens = maxCompletionTokens ?? maxTokens;
  return {
    model,
    stream: stream ?? false,
    includeUsage: streamOptions?.include_usage ?? false,
    sessionId: sessionId ?? null,
    turnId: turnId ?? null,
    request: {
      ...rest,
      ...toolUse(tools ?? [], toolChoice, parallelToolCalls),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    },
  };
}

/** Without tools there is nothing to choose among or to call in parallel; asking for it all the same is harmless. */
function toolUse(
  tools: readonly FunctionTool[],
  choice: ToolChoice | undefined,
  parallel: boolean | undefined,
): Pick<CompletionRequest, "tools" | "toolChoice" | "parallelToolCalls"> {
  if (tools.length === 0) {
    if (choice === undefined || choice === "auto" || choice === "none") return {};
    throw wrongValue("asks for a tool call, and no tools are given", "tool_choice");
  }
  if (typeof choice === "object" && !tools.some((tool) => tool.name === choice.name))
    throw wrongValue("names a function that is not among the tools", "tool_choice.function.name");
  return {
    tools,
    ...(choice === undefined ? {} : { toolChoice: choice }),
    ...(parallel === undefined ? {} : { parallelToolCalls: parallel }),
  };
}
