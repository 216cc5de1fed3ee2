import type { LanguageModelV3Usage, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { UsageReport } from "@tollgate/core/provider";

// No model reads or writes this much in one call: a larger figure is a fault, not a count.
const mostTokens = 1_000_000_000;

/** What the AI SDK read of an upstream's usage; null when it reported nothing. Broken figures count as not reported. */
export function usageReport({
  inputTokens,
  outputTokens,
}: LanguageModelV3Usage | LanguageModelV4Usage): UsageReport | null {
  const promptTokens = count(inputTokens.total);
  const completionTokens = count(outputTokens.total);
  const report = {
    promptTokens,
    completionTokens,
    cachedTokens: part(inputTokens.cacheRead, promptTokens),
    reasoningTokens: part(outputTokens.reasoning, completionTokens),
  };
  const reported = Object.entries(report).filter(([, figure]) => figure !== undefined);
  return reported.length === 0 ? null : Object.fromEntries(reported);
}

function count(value: number | undefined): number | undefined {
  return value !== undefined && Number.isInteger(value) && value >= 0 && value <= mostTokens
    ? value
    : undefined;
}

/** A detail of a count: never more than the count itself. */
function part(value: number | undefined, whole: number | undefined): number | undefined {
  const tokens = count(value);
  return tokens !== undefined && whole !== undefined && tokens <= whole ? tokens : undefined;
}
