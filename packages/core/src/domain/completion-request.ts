import type { Json } from "../kernel/stable-json.ts";
import type { Message, ProviderState } from "./message.ts";

/** A function the model may call. */
export interface FunctionTool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments, kept as data. */
  readonly parameters?: Json;
  readonly strict?: boolean;
  readonly state?: ProviderState;
}

/** Whether the model may, must or must not call a tool, or which one it must call. */
export type ToolChoice = "none" | "auto" | "required" | { readonly name: string };

/** The form of the answer: free text, any JSON object, or JSON that matches a schema. */
export type ResponseFormat =
  | { readonly type: "text" }
  | { readonly type: "json_object" }
  | {
      readonly type: "json_schema";
      readonly name: string;
      readonly description?: string;
      readonly schema?: Json;
      readonly strict?: boolean;
    };

/** How long a model may think before it answers. */
export interface Thinking {
  readonly type: "enabled" | "adaptive" | "between_tools" | "disabled";
  /** The most tokens to think with, if enabled. They are part of `maxOutputTokens`. */
  readonly budgetTokens?: number;
  /** How the answer shows the thinking. Default: the provider's. */
  readonly display?: "summarized" | "omitted" | "updates";
}

/** Members that only Anthropic's own API understands. Other providers may ignore them. */
export interface AnthropicOptions {
  /** Names for its `anthropic-beta` header, from a closed list. */
  readonly betas?: readonly string[];
  /** The client's `output_config.effort`. By itself, it doesn't ask for thinking. */
  readonly effort?: string;
  /** A cache breakpoint that moves with the end of the conversation: `cache_control` of the request. */
  readonly cacheControl?: Json;
  /** `context_management` as the client sent it. */
  readonly contextManagement?: Json;
}

/** A request to a model, independent of the protocol. Members without a value are absent, never null. */
export interface CompletionRequest {
  readonly messages: readonly Message[];
  readonly tools?: readonly FunctionTool[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  readonly responseFormat?: ResponseFormat;
  readonly reasoningEffort?: string;
  readonly thinking?: Thinking;
  readonly verbosity?: string;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly seed?: number;
  readonly logitBias?: Readonly<Record<string, number>>;
  readonly logprobs?: boolean;
  readonly topLogprobs?: number;
  readonly stop?: string | readonly string[];
  /** The most tokens the answer may have. A policy or a hard budget can lower it. */
  readonly maxOutputTokens?: number;
  readonly user?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly store?: boolean;
  readonly promptCacheKey?: string;
  readonly safetyIdentifier?: string;
  readonly serviceTier?: string;
  readonly anthropic?: AnthropicOptions;
}

const lowBudget = 4_096;
const mediumBudget = 16_384;

/** The effort for models without thinking budgets: the requested one, or one of about the same size. */
export function effortOf({ reasoningEffort, thinking }: CompletionRequest): string | undefined {
  const { budgetTokens } = thinking ?? {};
  if (reasoningEffort !== undefined || budgetTokens === undefined) return reasoningEffort;
  return budgetTokens <= lowBudget ? "low" : budgetTokens <= mediumBudget ? "medium" : "high";
}
