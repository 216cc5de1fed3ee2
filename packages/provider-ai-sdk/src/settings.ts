import type {
  JSONObject,
  JSONSchema7,
  JSONValue,
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

/** Models of Claude that know a thinking budget but no adaptive thinking. */
const olderClaude =
  /claude-(?:[123]|instant|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:-\d{8})?(?:$|[@:]|-v\d))/;

/** The share of the output limit that each effort may think with. */
const shares = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, xhigh: 0.95, max: 0.95 };

function shareOf(effort: unknown): number {
  return typeof effort === "string" && isEffort(effort) ? shares[effort] : 0;
}

function isEffort(effort: string): effort is keyof typeof shares {
  return Object.hasOwn(shares, effort);
}

/** The smallest budget that Claude takes, and the AI SDK's default. */
const minBudget = 1_024;

/** The smallest output limit of any Claude model with a budget. The AI SDK lowers a larger limit to the model's own. */
const modelLimit = 32_000;

/** A model as its AI SDK provider names it. */
interface NamedModel {
  readonly provider: string;
  readonly name: string;
  /** Whether it has the older version of the specification, which has no reasoning effort. */
  readonly isOlder: boolean;
}

/**
 * The settings with which Claude and Nova keep to the output limit. The AI SDK adds Claude's thinking budget to the limit,
 * and computes it from the most that the model can write, so an answer could cost far more than its hold. For a high effort
 * of Nova, it leaves out the limit.
 */
export function withinLimit(settings: Settings, model: NamedModel): Settings {
  const isAnthropic = /anthropic/i.test(model.provider);
  if (settings.maxOutputTokens === undefined) return settings;
  if (isAnthropic) return claudeWithin(settings, model, thinkingOf(settings, "anthropic"));
  if (!/bedrock/i.test(model.provider)) return settings;
  const thinking = thinkingOf(settings, "amazonBedrock");
  if (model.name.includes("amazon.nova-2-lite")) return novaWithin(settings, thinking);
  const isProfile = model.name.includes(":application-inference-profile/");
  // The AI SDK treats a profile as Claude if it has a budget.
  const isClaude = model.name.includes("anthropic") || (isProfile && thinking.budget > 0);
  return isClaude ? claudeWithin(settings, model, thinking) : settings;
}

/** The configured options on thinking. */
interface ConfiguredThinking {
  /** The tokens that the AI SDK adds to the output limit; 0 for none. */
  readonly budget: number;
  /** Whether they decide how to think, whatever the request's effort. */
  readonly isDecided: boolean;
  readonly effort: JSONValue | undefined;
  /** The options with more members on thinking. */
  with(members: JSONObject): SharedV4ProviderOptions;
}

function thinkingOf(
  { providerOptions = {} }: Settings,
  vendor: "anthropic" | "amazonBedrock",
): ConfiguredThinking {
  const isBedrock = vendor === "amazonBedrock";
  const member = isBedrock ? "reasoningConfig" : "thinking";
  const given = providerOptions[vendor] ?? (isBedrock ? providerOptions["bedrock"] : {}) ?? {};
  const own = objectOf(given[member]);
  // Bedrock's provider has no default budget: it computes one from the effort.
  const { type, budgetTokens = isBedrock ? 0 : minBudget } = own;
  const budget = type === "enabled" && typeof budgetTokens === "number" ? budgetTokens : 0;
  const isOther = type !== undefined && type !== "enabled";
  return {
    budget,
    isDecided: budget > 0 || isOther || (!isBedrock && given["effort"] !== undefined),
    effort: own["maxReasoningEffort"],
    with: (members) => ({
      ...providerOptions,
      [vendor]: { ...given, [member]: { ...own, ...members } },
    }),
  };
}

function claudeWithin(
  settings: Settings,
  { name, isOlder }: NamedModel,
  { budget, isDecided, with: optionsWith }: ConfiguredThinking,
): Settings {
  const { maxOutputTokens: limit = 0, reasoning, ...rest } = settings;
  if (budget > 0 && budget >= limit)
    throw rejected("The thinking budget is larger than the output limit.", { param: "max_tokens" });
  if (isDecided) return { ...settings, maxOutputTokens: limit - budget };
  const share = isOlder ? 0 : shareOf(reasoning);
  // The AI SDK gives a budget to a model that it doesn't know, too.
  const hasBudget = olderClaude.test(name) || !name.includes("claude-");
  if (share === 0 || !hasBudget) return settings;
  const budgetTokens = Math.max(minBudget, Math.floor(Math.min(limit, modelLimit) * share));
  // A limit without room for the smallest budget leaves no room to think.
  if (budgetTokens >= limit) return { ...rest, maxOutputTokens: limit };
  return {
    ...rest,
    maxOutputTokens: limit - budgetTokens,
    providerOptions: optionsWith({ type: "enabled", budgetTokens }),
  };
}

function novaWithin(
  settings: Settings,
  { effort, with: optionsWith }: ConfiguredThinking,
): Settings {
  const isTooHigh = (asked: unknown): boolean => shareOf(asked) > shares.medium;
  const own = isTooHigh(effort) ? optionsWith({ maxReasoningEffort: "medium" }) : undefined;
  return {
    ...settings,
    ...(isTooHigh(settings.reasoning) ? { reasoning: "medium" } : {}),
    ...(own ? { providerOptions: own } : {}),
  };
}

function objectOf(value: JSONValue | undefined): JSONObject {
  return isObject(value) ? value : {};
}

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
