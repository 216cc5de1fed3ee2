import type { JSONObject, JSONValue, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { type CompletionRequest, effortOf } from "@tollgate/core/provider";
import { rejected } from "./failures.ts";
import { membersOf } from "./json-object.ts";
import type { Settings } from "./settings.ts";

/** Models of Claude that know a thinking budget but no adaptive thinking. */
const olderClaude = /claude-(?:v?[123]|instant|(?:opus|sonnet|haiku)-4(?![\d.]|-[6-9]))/;

/** Whether the AI SDK gives a model a budget, as it does to any that it doesn't know. */
function knowsBudget(name: string): boolean {
  return olderClaude.test(name) || !name.includes("claude-");
}

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
  /** Whether its provider is made for the Messages API, whatever its name is. */
  readonly hasMessages: boolean;
  /** Whether it has the older version of the specification, which has no reasoning effort. */
  readonly isOlder: boolean;
}

/**
 * The settings for a model, which thinks as its client asks for it, and within the output limit. The AI SDK adds Claude's
 * thinking budget to the limit, and computes it from the most that the model can write, so an answer could cost far more
 * than its hold. For a high effort of Nova, it leaves out the limit.
 */
export function settingsFor(
  model: NamedModel,
  settings: Settings,
  request: CompletionRequest,
): Settings {
  const { provider, name } = model;
  if (model.hasMessages || /anthropic|\.messages$/i.test(provider)) {
    const [own = provider] = provider.split(".");
    return claudeSettings(model, settings, request, anthropicOptions(own));
  }
  if (!/bedrock/i.test(provider)) return settings;
  const thinking = thinkingOf(settings, bedrockOptions);
  if (name.includes("amazon.nova-2-lite")) return novaWithin(settings, thinking);
  // Names such as those of application inference profiles don't say which model it is.
  const hidesModel = /^arn:/.test(name) && !/:(?:foundation-model|inference-profile)\//.test(name);
  // The AI SDK treats it as Claude with its option `modelFamily`, and a profile also if it has a budget.
  if (name.includes("anthropic") || (hidesModel && thinking.budget > 0))
    return claudeSettings(model, settings, request, bedrockOptions);
  // It would add a budget for the effort.
  return hidesModel && !thinking.isDecided ? withoutEffort(settings) : settings;
}

function withoutEffort({ reasoning: _, ...settings }: Settings): Settings {
  return settings;
}

/** Where a provider of the AI SDK reads its options on thinking. */
interface OptionNames {
  /** Its names, of which the first with options counts. The last one is always known. */
  readonly names: readonly string[];
  /** A name whose options count, too, if those above don't have them. */
  readonly common?: string;
  readonly member: "thinking" | "reasoningConfig";
  /** The budget of thinking that is enabled without one. */
  readonly defaultBudget: number;
}

function anthropicOptions(own: string): OptionNames {
  const names = [own, ...(own === "googleVertex" ? ["vertex"] : []), "anthropic"];
  return { names, common: "anthropic", member: "thinking", defaultBudget: minBudget };
}

/** Bedrock's provider has no default budget: it computes one from the effort. */
const bedrockOptions: OptionNames = {
  names: ["amazonBedrock", "bedrock"],
  member: "reasoningConfig",
  defaultBudget: 0,
};

/** The options on thinking. */
interface ThinkingOptions {
  /** The tokens that the AI SDK adds to the output limit; 0 for none. */
  readonly budget: number;
  /** Whether they decide how to think, whatever the request's effort. */
  readonly isDecided: boolean;
  readonly effort: JSONValue | undefined;
  /** The options with more members on thinking, and with an effort. */
  with(members: JSONObject, effort?: string): SharedV4ProviderOptions;
}

function thinkingOf(
  { providerOptions = {} }: Settings,
  { names, common, member, defaultBudget }: OptionNames,
): ThinkingOptions {
  const name = names.find((known) => providerOptions[known] !== undefined) ?? names.at(-1) ?? "";
  const shared = common === undefined ? {} : providerOptions[common];
  const given: JSONObject = { ...shared, ...providerOptions[name] };
  const own = membersOf(given[member]);
  const { type, budgetTokens = defaultBudget } = own;
  const budget = type === "enabled" && typeof budgetTokens === "number" ? budgetTokens : 0;
  const isOther = type !== undefined && type !== "enabled";
  const isBedrock = member === "reasoningConfig";
  return {
    budget,
    isDecided: budget > 0 || isOther || (!isBedrock && given["effort"] !== undefined),
    effort: own["maxReasoningEffort"],
    with(members, effort) {
      const asked =
        effort === undefined ? {} : { [isBedrock ? "maxReasoningEffort" : "effort"]: effort };
      const thinking = { ...own, ...members, ...(isBedrock ? asked : {}) };
      const isEmpty = Object.keys(thinking).length === 0;
      return {
        ...providerOptions,
        [name]: {
          ...given,
          ...(isBedrock ? {} : asked),
          ...(isEmpty ? {} : { [member]: thinking }),
        },
      };
    },
  };
}

/** Configured options take precedence over what a client of the Messages API wrote, and that over an effort. */
function claudeSettings(
  model: NamedModel,
  settings: Settings,
  request: CompletionRequest,
  names: OptionNames,
): Settings {
  const { thinking, anthropic, reasoningEffort } = request;
  const effort = knowsBudget(model.name) ? reasoningEffort : effortOf(request);
  const configured = thinkingOf(settings, names);
  if (configured.isDecided || (thinking ?? anthropic?.effort) === undefined)
    return claudeWithin(settings, model, configured);
  const written = {
    ...withoutEffort(settings),
    providerOptions: configured.with(
      writtenThinking(request, settings.maxOutputTokens, { ...names, ...model }),
      effort === "none" ? undefined : effort,
    ),
  };
  return claudeWithin(written, model, thinkingOf(written, names));
}

/** Thinking as the client asked for it. Its budget must be below the output limit, which a policy may have lowered. */
function writtenThinking(
  { thinking }: CompletionRequest,
  limit = Number.POSITIVE_INFINITY,
  { member, name }: OptionNames & NamedModel,
): JSONObject {
  // Bedrock's provider knows neither thinking between tools nor updates on thinking.
  const isBedrock = member === "reasoningConfig";
  if (thinking === undefined || (isBedrock && thinking.type === "between_tools")) return {};
  const { type, budgetTokens: asked, display } = thinking;
  const isShown = display !== undefined && !(isBedrock && display === "updates");
  const shown = isShown ? { display } : {};
  if (asked === undefined) return { type, ...shown };
  if (!knowsBudget(name)) return { type: "adaptive", ...shown };
  const budgetTokens = Math.min(asked, limit - 1);
  return budgetTokens < minBudget && budgetTokens < asked ? {} : { type, budgetTokens, ...shown };
}

function claudeWithin(
  settings: Settings,
  { name, isOlder }: NamedModel,
  { budget, isDecided, with: optionsWith }: ThinkingOptions,
): Settings {
  const { maxOutputTokens: limit, reasoning, ...rest } = settings;
  if (limit === undefined) return settings;
  if (budget > 0 && budget >= limit)
    throw rejected("The thinking budget is larger than the output limit.", { param: "max_tokens" });
  if (isDecided) return { ...settings, maxOutputTokens: limit - budget };
  const share = isOlder ? 0 : shareOf(reasoning);
  if (share === 0 || !knowsBudget(name)) return settings;
  const budgetTokens = Math.max(minBudget, Math.floor(Math.min(limit, modelLimit) * share));
  // A limit without room for the smallest budget leaves no room to think.
  if (budgetTokens >= limit) return { ...rest, maxOutputTokens: limit };
  return {
    ...rest,
    maxOutputTokens: limit - budgetTokens,
    providerOptions: optionsWith({ type: "enabled", budgetTokens }),
  };
}

function novaWithin(settings: Settings, { effort, with: optionsWith }: ThinkingOptions): Settings {
  const isTooHigh = (asked: unknown): boolean => shareOf(asked) > shares.medium;
  if (settings.maxOutputTokens === undefined) return settings;
  const own = isTooHigh(effort) ? optionsWith({ maxReasoningEffort: "medium" }) : undefined;
  return {
    ...settings,
    ...(isTooHigh(settings.reasoning) ? { reasoning: "medium" } : {}),
    ...(own ? { providerOptions: own } : {}),
  };
}
