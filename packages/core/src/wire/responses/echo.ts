import type {
  CompletionRequest,
  FunctionTool,
  ResponseFormat,
  ToolChoice,
} from "../../domain/completion-request.ts";
import { standardTier } from "../../domain/service-tier.ts";
import type { Json } from "../../kernel/stable-json.ts";
import type { NamespaceTool } from "./namespaces.ts";

type EchoedTool =
  | EchoedFunction
  | {
      readonly type: "namespace";
      readonly name: string;
      readonly description: string;
      readonly tools: readonly EchoedFunction[];
    };

interface EchoedFunction {
  readonly type: "function";
  readonly name: string;
  readonly description: string | null;
  readonly parameters: Json;
  readonly strict: boolean | null;
}

type EchoedFormat =
  | { readonly type: "text" | "json_object" }
  | {
      readonly type: "json_schema";
      readonly name: string;
      /** Absent if not given, because the published schema doesn't allow null here. */
      readonly description?: string;
      readonly schema: Json;
      readonly strict: boolean;
    };

/** The members of a request that its response object repeats, under their wire names. Absent ones have their defaults. */
export interface ResponseEcho {
  readonly instructions: string | null;
  readonly max_output_tokens: number | null;
  readonly parallel_tool_calls: boolean;
  readonly prompt_cache_key: string | null;
  readonly reasoning: { readonly effort: string | null; readonly summary: string | null };
  readonly safety_identifier: string | null;
  readonly service_tier: string;
  readonly temperature: number;
  readonly text: { readonly format: EchoedFormat; readonly verbosity: string };
  readonly tool_choice: string | { readonly type: "function"; readonly name: string };
  readonly tools: readonly EchoedTool[];
  readonly top_logprobs: number;
  readonly top_p: number;
  readonly presence_penalty: number;
  readonly frequency_penalty: number;
  readonly truncation: "auto" | "disabled";
  readonly metadata: Readonly<Record<string, string>>;
  /** Absent if not given, because the published schema doesn't allow null here. */
  readonly user?: string;
}

/** Members that the echo shows but the model doesn't get, or gets in another form. */
export interface Echoed {
  readonly instructions: string | null;
  readonly tools: readonly (FunctionTool | NamespaceTool)[];
  readonly parallelToolCalls: boolean | undefined;
  readonly toolChoice: ToolChoice | undefined;
  readonly summary: string | undefined;
  readonly truncation: "auto" | "disabled" | undefined;
}

export function echoOf(options: Omit<CompletionRequest, "messages">, asked: Echoed): ResponseEcho {
  return {
    instructions: asked.instructions,
    max_output_tokens: options.maxOutputTokens ?? null,
    parallel_tool_calls: asked.parallelToolCalls ?? true,
    prompt_cache_key: options.promptCacheKey ?? null,
    reasoning: { effort: options.reasoningEffort ?? null, summary: asked.summary ?? null },
    safety_identifier: options.safetyIdentifier ?? null,
    // The serving tier is known only after the answer.
    service_tier: standardTier,
    temperature: options.temperature ?? 1,
    text: {
      format: echoedFormat(options.responseFormat ?? { type: "text" }),
      verbosity: options.verbosity ?? "medium",
    },
    tool_choice: echoedChoice(asked.toolChoice ?? "auto"),
    tools: asked.tools.map(echoedTool),
    top_logprobs: options.topLogprobs ?? 0,
    top_p: options.topP ?? 1,
    presence_penalty: options.presencePenalty ?? 0,
    frequency_penalty: options.frequencyPenalty ?? 0,
    truncation: asked.truncation ?? "disabled",
    metadata: options.metadata ?? {},
    ...(options.user === undefined ? {} : { user: options.user }),
  };
}

function echoedFormat(format: ResponseFormat): EchoedFormat {
  if (format.type !== "json_schema") return format;
  const { schema = null, strict = false, ...given } = format;
  return { ...given, schema, strict };
}

function echoedChoice(choice: ToolChoice): ResponseEcho["tool_choice"] {
  return typeof choice === "string" ? choice : { type: "function", name: choice.name };
}

function echoedTool(tool: FunctionTool | NamespaceTool): EchoedTool {
  if (!("tools" in tool)) return echoedFunction(tool);
  const { type, name, description = "", tools } = tool;
  return { type, name, description, tools: tools.map(echoedFunction) };
}

function echoedFunction(tool: FunctionTool): EchoedFunction {
  const { name, description = null, parameters = null, strict = null } = tool;
  return { type: "function", name, description, parameters, strict };
}
