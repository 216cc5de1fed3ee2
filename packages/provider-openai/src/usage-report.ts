import {
  fittingDetails,
  type Json,
  reportedCost,
  type UsageDetails,
  type UsageReport,
} from "@tollgate/core/provider";
import { isObject, type JsonObject, membersOf, tierIn, tokenCount } from "@tollgate/provider-http";

/**
 * Converts an upstream's `usage` to one format: details are parts of the prompt and completion tokens. Negative, invalid
 * and absurd numbers, and details larger than their total, are treated as missing. `serviceTier` is the one of the answer.
 */
export function usageReport(usage: Json | undefined, serviceTier?: Json): UsageReport | null {
  const members = isObject(usage) ? usage : {};
  const { promptTokens, completionTokens, ...details } = tokens(members);
  const costNanoUsd = reportedCost(members);
  const tier = tierIn(serviceTier) ?? tierIn(members["service_tier"]);
  const report: Report = details;
  if (promptTokens !== undefined) report.promptTokens = promptTokens;
  if (completionTokens !== undefined) report.completionTokens = completionTokens;
  if (costNanoUsd !== undefined) report.costNanoUsd = costNanoUsd;
  if (tier !== undefined) report.serviceTier = tier;
  return Object.keys(report).length === 0 ? null : report;
}

type Report = { -readonly [Name in keyof UsageReport]: UsageReport[Name] };

function tokens(usage: JsonObject) {
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  const input = membersOf(usage["prompt_tokens_details"]);
  const output = membersOf(usage["completion_tokens_details"]);
  const reasoning = tokenCount(output["reasoning_tokens"]);
  const cache = cacheOf(usage, input);
  const promptTokens = withCache(usage, tokenCount(prompt_tokens), cache);
  const completionTokens = withReasoning(
    promptTokens,
    tokenCount(completion_tokens),
    reasoning,
    tokenCount(total_tokens),
  );
  const counted = { promptTokens, completionTokens };
  const details: Readonly<Record<keyof UsageDetails, number | undefined>> = {
    cachedTokens: cache.read,
    cacheWriteTokens: cache.written,
    cacheWrite1hTokens: cache.writtenFor1h,
    audioInputTokens: tokenCount(input["audio_tokens"]),
    imageInputTokens: tokenCount(input["image_tokens"]),
    reasoningTokens: reasoning,
    audioOutputTokens: tokenCount(output["audio_tokens"]),
    imageOutputTokens: tokenCount(output["image_tokens"]),
  };
  return { ...counted, ...fittingDetails(details, counted) };
}

interface CacheUse {
  readonly read: number | undefined;
  readonly written: number | undefined;
  readonly writtenFor1h: number | undefined;
}

/** Cache reads and writes, by the field names of OpenAI and OpenRouter, Qwen, DeepSeek, Moonshot and Anthropic. */
function cacheOf(usage: JsonObject, details: JsonObject): CacheUse {
  const creation = membersOf(usage["cache_creation"]);
  return {
    read:
      tokenCount(details["cached_tokens"]) ??
      tokenCount(usage["prompt_cache_hit_tokens"]) ??
      tokenCount(usage["cached_tokens"]) ??
      tokenCount(usage["cache_read_input_tokens"]),
    written:
      tokenCount(details["cache_write_tokens"]) ??
      tokenCount(details["cache_creation_input_tokens"]) ??
      tokenCount(usage["cache_creation_input_tokens"]),
    writtenFor1h: tokenCount(creation["ephemeral_1h_input_tokens"]),
  };
}

/**
 * Anthropic doesn't count cache reads and writes as input. If its field names are present, and the prompt tokens are only
 * the input or too few to include the cache, this adds the cache.
 */
function withCache(
  usage: JsonObject,
  prompt: number | undefined,
  { read = 0, written = 0 }: CacheUse,
): number | undefined {
  const uncached = tokenCount(usage["input_tokens"]);
  const isSeparate =
    tokenCount(usage["cache_read_input_tokens"]) !== undefined ||
    tokenCount(usage["cache_creation_input_tokens"]) !== undefined;
  const input = prompt ?? uncached;
  if (!isSeparate || input === undefined) return prompt;
  return input === uncached || read + written > input ? input + read + written : input;
}

/** Some upstreams omit reasoning from the completion tokens, some also from the details. The total shows it. */
function withReasoning(
  prompt: number | undefined,
  completion: number | undefined,
  reasoning: number | undefined,
  total: number | undefined,
): number | undefined {
  if (prompt === undefined || completion === undefined || total === undefined) return completion;
  const isMore = total > prompt + completion;
  // Gemini reports reasoning only in its total.
  if (reasoning === undefined) return isMore ? total - prompt : completion;
  return total === prompt + completion + reasoning ? completion + reasoning : completion;
}
