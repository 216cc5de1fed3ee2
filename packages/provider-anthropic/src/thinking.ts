import type { CompletionRequest, ResponseFormat, Thinking } from "@tollgate/core/provider";
import type { AnthropicProviderOptions } from "./options.ts";
import { rejected } from "./rejected.ts";

/** The options that decide how a model is asked to think. */
export type ThinkingOptions = Pick<AnthropicProviderOptions, "betas" | "thinking">;

/** Models that know a thinking budget but no adaptive thinking. */
const olderModel = /^claude-(?:[123]|instant|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:-\d{8})?(?:$|@))/;

/** The smallest budget that the API takes. */
const minBudget = 1_024;

/** The share of the output cap that each effort may think with. */
const shares: Readonly<Record<string, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
};

interface Asked extends ThinkingOptions {
  /** The output cap that is sent. Absent if only tokens are counted. */
  readonly max_tokens?: number;
}

/** The members `thinking` and `output_config` of a request. */
export function thinkingMembers(
  { upstreamName, request }: { readonly upstreamName: string; readonly request: CompletionRequest },
  options: Asked,
): object {
  const { thinking, anthropic, reasoningEffort: effort } = request;
  const format = request.responseFormat && formatOf(request.responseFormat);
  if (thinking !== undefined || anthropic?.effort !== undefined)
    return {
      thinking: thinking && written(thinking, request, options),
      ...outputConfig(effort === "none" ? undefined : effort, format),
    };
  if (effort === undefined || effort === "none")
    return {
      ...(effort === "none" ? { thinking: { type: "disabled" } } : {}),
      ...outputConfig(undefined, format),
    };
  const share = Object.hasOwn(shares, effort) ? shares[effort] : undefined;
  if (share === undefined)
    throw rejected(
      "The provider's models don't support this reasoning effort.",
      "reasoning_effort",
    );
  const isAdaptive =
    (options.thinking ?? (olderModel.test(upstreamName) ? "budget" : "adaptive")) === "adaptive";
  if (isAdaptive)
    return {
      ...unsampled,
      thinking: { type: "adaptive" },
      ...outputConfig(effort === "minimal" ? "low" : effort, format),
    };
  const { max_tokens = minBudget * 2 } = options;
  const budget = Math.min(Math.max(minBudget, Math.floor(max_tokens * share)), max_tokens - 1);
  return {
    ...(mayAnswerFreely(request) ? enabled(budget) : {}),
    ...outputConfig(undefined, format),
  };
}

/** The API rejects these next to thinking. An effort asks for it, but the client may not know that. */
const unsampled = { temperature: undefined, top_p: undefined, top_k: undefined };

/** The API rejects a thinking budget next to a choice that forces a tool. */
function mayAnswerFreely({ toolChoice = "auto" }: CompletionRequest): boolean {
  return toolChoice === "auto" || toolChoice === "none";
}

/** Thinking as the client asked for it. Its budget must be below the output cap, which a policy may have lowered. */
function written(
  { type, budgetTokens, display }: Thinking,
  { anthropic }: CompletionRequest,
  { max_tokens, betas = [] }: Asked,
): object | undefined {
  const shown = display === undefined ? {} : { display };
  if (budgetTokens === undefined) return { type, ...shown };
  // Interleaved thinking may take several times the output cap.
  const isInterleaved = [...betas, ...(anthropic?.betas ?? [])].some((beta) =>
    beta.startsWith("interleaved-thinking"),
  );
  const fitted =
    isInterleaved || max_tokens === undefined
      ? budgetTokens
      : Math.min(budgetTokens, max_tokens - 1);
  return fitted < minBudget && fitted < budgetTokens
    ? undefined
    : { type, budget_tokens: fitted, ...shown };
}

/** A cap without room for the smallest budget leaves no room to think. */
function enabled(budget: number): object {
  return budget < minBudget
    ? {}
    : { ...unsampled, thinking: { type: "enabled", budget_tokens: budget } };
}

function outputConfig(effort: string | undefined, format: object | undefined): object {
  return effort === undefined && format === undefined ? {} : { output_config: { effort, format } };
}

function formatOf(format: ResponseFormat): object | undefined {
  return format.type === "json_schema"
    ? { type: "json_schema", schema: format.schema ?? { type: "object" } }
    : undefined;
}
