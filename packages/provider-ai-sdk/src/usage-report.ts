import type {
  LanguageModelV3Usage,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import { isTierName, reportedCost, type UsageReport } from "@tollgate/core/provider";
import { membersOf } from "./json-object.ts";

// No model reads or writes this much in one call: a larger number is an error.
const maxTokens = 1_000_000_000;

/**
 * Converts the AI SDK's usage and service tier; null if it reported nothing. The AI SDK has no fields for a cost or for
 * how long a cache is kept, so both come from the upstream's raw usage.
 */
export function usageReport(
  { inputTokens, outputTokens, raw = {} }: LanguageModelV3Usage | LanguageModelV4Usage,
  metadata: SharedV4ProviderMetadata = {},
): UsageReport | null {
  const promptTokens = withCache(count(inputTokens.total), raw);
  const completionTokens = withReasoning(outputTokens, promptTokens, raw);
  const rawCache = rawCacheOf(raw);
  const cachedTokens =
    part(inputTokens.cacheRead || rawCache.read, promptTokens) ??
    part(inputTokens.cacheRead, promptTokens);
  const uncached = promptTokens === undefined ? undefined : promptTokens - (cachedTokens ?? 0);
  const cacheWriteTokens = part(inputTokens.cacheWrite ?? rawCache.written, uncached);
  const { cache_creation } = raw;
  const written1h = membersOf(cache_creation)["ephemeral_1h_input_tokens"];
  const report = {
    promptTokens,
    completionTokens,
    cachedTokens,
    cacheWriteTokens,
    cacheWrite1hTokens: part(written1h, cacheWriteTokens),
    reasoningTokens: part(outputTokens.reasoning, completionTokens),
    costNanoUsd: reportedCost(raw),
    serviceTier: tierIn(raw["service_tier"]) ?? tierOfMetadata(metadata),
    // The AI SDK doesn't count these.
    audioInputTokens: undefined,
    audioOutputTokens: undefined,
    imageInputTokens: undefined,
    imageOutputTokens: undefined,
  } satisfies Readonly<Record<keyof UsageReport, number | string | undefined>>;
  const reported = Object.entries(report).filter(([, figure]) => figure !== undefined);
  return reported.length === 0 ? null : Object.fromEntries(reported);
}

/**
 * Cache reads and writes in the raw usage. The AI SDK's provider for any OpenAI-compatible upstream finds reads under one
 * name only, and no writes.
 */
function rawCacheOf(raw: NonNullable<LanguageModelV4Usage["raw"]>) {
  const given = membersOf(raw["prompt_tokens_details"]);
  return {
    read: raw["prompt_cache_hit_tokens"] ?? raw["cached_tokens"] ?? raw["cache_read_input_tokens"],
    written:
      given["cache_write_tokens"] ??
      given["cache_creation_input_tokens"] ??
      raw["cache_creation_input_tokens"],
  };
}

/**
 * The prompt tokens with the cache. Anthropic doesn't count it as input. If an OpenAI-compatible upstream has its field names,
 * and the prompt tokens are only the input or too few to include the cache, this adds the cache.
 */
function withCache(
  prompt: number | undefined,
  raw: NonNullable<LanguageModelV4Usage["raw"]>,
): number | undefined {
  const read = count(raw["cache_read_input_tokens"]) ?? 0;
  const cache = read + (count(raw["cache_creation_input_tokens"]) ?? 0);
  // The AI SDK's own provider for Anthropic has added it.
  if (prompt === undefined || raw["prompt_tokens"] !== prompt) return prompt;
  return raw["input_tokens"] === prompt || cache > prompt ? prompt + cache : prompt;
}

/**
 * The completion tokens with reasoning. xAI's and Gemini's endpoints for OpenAI's clients omit it from them, and Gemini's also
 * from the details. The AI SDK passes that on, but the total of the raw usage shows it.
 */
function withReasoning(
  { total, reasoning = 0 }: LanguageModelV4Usage["outputTokens"],
  prompt: number | undefined,
  { prompt_tokens, total_tokens }: Record<string, unknown>,
): number | undefined {
  const completion = count(total);
  const all = count(total_tokens);
  if (completion === undefined || all === undefined || prompt === undefined) return completion;
  const missing = prompt_tokens === prompt ? all - prompt - completion : 0;
  return missing > 0 && (reasoning === 0 || reasoning === missing)
    ? completion + missing
    : completion;
}

function tierOfMetadata(metadata: SharedV4ProviderMetadata): string | undefined {
  return Object.values(metadata)
    .map((vendor) => tierIn(vendor["serviceTier"]))
    .find((tier) => tier !== undefined);
}

function tierIn(value: unknown): string | undefined {
  return isTierName(value) ? value : undefined;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= maxTokens
    ? value
    : undefined;
}

/** Returns a detail of a total, if it isn't larger than the total. */
function part(value: unknown, whole: number | undefined): number | undefined {
  const tokens = count(value);
  return tokens !== undefined && whole !== undefined && tokens <= whole ? tokens : undefined;
}
