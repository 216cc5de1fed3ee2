import { type Json, parseUsd, type UsageReport } from "@tollgate/core/provider";
import { isObject, membersOf } from "./json.ts";

// No model reads or writes this much in one call: a larger figure is a fault, not a count.
const mostTokens = 1_000_000_000;
const mostUsd = 10_000;

/** What an upstream's `usage` says; negative, broken and absurd figures count as not reported. */
export function usageReport(usage: Json | undefined): UsageReport | null {
  if (!isObject(usage)) return null;
  const { prompt_tokens, completion_tokens, total_tokens, cost } = usage;
  const { prompt_tokens_details, completion_tokens_details } = usage;
  const prompt = count(prompt_tokens);
  const written = count(completion_tokens);
  const reasoning = count(membersOf(completion_tokens_details)["reasoning_tokens"]);
  const completion = withReasoning(prompt, written, reasoning, count(total_tokens));
  const report = {
    promptTokens: prompt,
    completionTokens: completion,
    cachedTokens: part(membersOf(prompt_tokens_details)["cached_tokens"], prompt),
    reasoningTokens: part(reasoning, completion),
    costNanoUsd: costOf(cost),
  };
  const reported = Object.entries(report).filter(([, figure]) => figure !== undefined);
  return reported.length === 0 ? null : Object.fromEntries(reported);
}

/** Some upstreams leave reasoning out of the completion tokens; their total then only adds up with it. */
function withReasoning(
  prompt: number | undefined,
  completion: number | undefined,
  reasoning: number | undefined,
  total: number | undefined,
): number | undefined {
  if (prompt === undefined || completion === undefined || reasoning === undefined)
    return completion;
  return total === prompt + completion + reasoning ? completion + reasoning : completion;
}

function count(value: Json | undefined): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= mostTokens
    ? value
    : undefined;
}

/** A detail of a count: never more than the count itself. */
function part(value: Json | undefined, whole: number | undefined): number | undefined {
  const tokens = count(value);
  return tokens !== undefined && whole !== undefined && tokens <= whole ? tokens : undefined;
}

function costOf(cost: Json | undefined): number | undefined {
  if (typeof cost !== "number" || cost > mostUsd) return undefined;
  return parseUsd(cost) ?? undefined;
}
