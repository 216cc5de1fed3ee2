import type {
  JSONSchema7,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ToolChoice,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import {
  type CompletionRequest,
  effortOf,
  type FunctionTool,
  type Json,
  type ResponseFormat,
  type ToolChoice,
} from "@tollgate/core/provider";
import { rejected } from "./failures.ts";
import { breakpointOptions } from "./provider-state.ts";

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

/** The settings of a call without the conversation, which differs between the AI SDK's versions. */
export type Settings = Omit<LanguageModelV4CallOptions, "prompt" | "abortSignal">;

/**
 * Converts a request to the settings of an AI SDK call. Rejects parameters that would change the answer and that the AI
 * SDK doesn't support. Hints (`user`, `metadata`, `store`, cache keys) stay with the gateway.
 * @throws ProviderError naming the parameter
 */
export function settingsOf(
  request: CompletionRequest,
  providerOptions: SharedV4ProviderOptions,
): Settings {
  refuseUnsupported(request);
  const { stop, responseFormat, toolChoice, tools = [] } = request;
  return withoutUndefined<Settings>({
    maxOutputTokens: request.maxOutputTokens,
    temperature: request.temperature,
    topP: request.topP,
    topK: request.topK,
    presencePenalty: request.presencePenalty,
    frequencyPenalty: request.frequencyPenalty,
    seed: request.seed,
    stopSequences: stop === undefined ? undefined : [stop].flat(),
    responseFormat: responseFormat && formatOf(responseFormat),
    reasoning: knownEffort(effortOf(request)),
    tools: tools.length === 0 ? undefined : tools.map(toolOf),
    toolChoice: tools.length === 0 || !toolChoice ? undefined : choiceOf(toolChoice),
    providerOptions: merged(vendorOptions(request), providerOptions),
  });
}

function refuseUnsupported({ logprobs, topLogprobs, logitBias }: CompletionRequest): void {
  const refused = [
    logprobs === true && "logprobs",
    topLogprobs !== undefined && topLogprobs > 0 && "top_logprobs",
    logitBias !== undefined && Object.keys(logitBias).length > 0 && "logit_bias",
  ].find((name) => name !== false);
  if (refused !== undefined)
    throw rejected("The provider's models don't support this parameter.", { param: refused });
}

function knownEffort(effort: string | undefined): (typeof efforts)[number] | undefined {
  const known = efforts.find((name) => name === effort);
  if (effort !== undefined && known === undefined)
    throw rejected("The provider's models don't support this reasoning effort.", {
      param: "reasoning_effort",
    });
  return known;
}

type Format = NonNullable<Settings["responseFormat"]>;
type JsonFormat = Extract<Format, { type: "json" }>;

function formatOf(format: ResponseFormat): Format {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json_object") return { type: "json" };
  const { name, description, schema } = format;
  return withoutUndefined<JsonFormat>({
    type: "json",
    name,
    description,
    schema: schema === undefined ? undefined : schemaOf(schema),
  });
}

function toolOf(tool: FunctionTool): LanguageModelV4FunctionTool {
  const { name, description, parameters, strict } = tool;
  return withoutUndefined<LanguageModelV4FunctionTool>({
    type: "function",
    name,
    description,
    inputSchema: schemaOf(parameters ?? { type: "object", properties: {} }),
    strict,
    providerOptions: breakpointOptions(tool.state).providerOptions,
  });
}

function choiceOf(choice: ToolChoice): LanguageModelV4ToolChoice {
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.name };
}

function schemaOf(schema: Json): JSONSchema7 {
  if (isSchema(schema)) return schema;
  throw rejected("A JSON Schema must be an object.");
}

/** A schema is passed on as data. The upstream validates it. */
function isSchema(schema: unknown): schema is JSONSchema7 {
  return typeof schema === "object" && schema !== null && !Array.isArray(schema);
}

/** OpenAI's service tiers in the AI SDK. It rejects any other tier. */
const openaiTiers = ["default", "flex", "priority", "fast", "ultrafast"];

/** Settings without a common name in the AI SDK, by vendor. Each vendor reads only its own. */
function vendorOptions(request: CompletionRequest): SharedV4ProviderOptions {
  const { parallelToolCalls, verbosity, serviceTier } = request;
  const strict = strictness(request);
  if ([parallelToolCalls, verbosity, serviceTier, strict].every((option) => option === undefined))
    return {};
  const schema = strict === undefined ? {} : { strictJsonSchema: strict };
  const calls = parallelToolCalls === undefined ? {} : { parallelToolCalls };
  return {
    openai: {
      ...calls,
      ...schema,
      ...(verbosity === undefined ? {} : { textVerbosity: verbosity }),
      ...(openaiTiers.some((tier) => tier === serviceTier) ? { serviceTier } : {}),
    },
    ...(strict === undefined ? {} : { openaiCompatible: schema, groq: schema }),
    ...(serviceTier === "flex" ? { groq: { ...schema, serviceTier } } : {}),
    mistral: { ...calls, ...schema },
    anthropic: parallelToolCalls === false ? { disableParallelToolUse: true } : {},
  };
}

/**
 * Whether the answer must match its schema exactly. Without the option, some vendors of the AI SDK always ask for it, and
 * then reject a schema with optional members.
 */
function strictness({ responseFormat }: CompletionRequest): boolean | undefined {
  if (responseFormat?.type !== "json_schema") return undefined;
  return responseFormat.schema === undefined ? undefined : (responseFormat.strict ?? false);
}

function merged(
  ours: SharedV4ProviderOptions,
  theirs: SharedV4ProviderOptions,
): SharedV4ProviderOptions | undefined {
  const vendors = [...new Set([...Object.keys(ours), ...Object.keys(theirs)])];
  if (vendors.length === 0) return undefined;
  return Object.fromEntries(vendors.map((name) => [name, { ...ours[name], ...theirs[name] }]));
}

/** Removes undefined members: the AI SDK's types distinguish absent from undefined. */
function withoutUndefined<Options extends object>(
  members: {
    readonly [Name in keyof Options]: Options[Name] | undefined;
  },
): Options;
function withoutUndefined(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
