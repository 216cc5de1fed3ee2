import { GatewayError } from "../errors/gateway-error.ts";
import { figuresOf } from "./apply-correction.ts";
import type { Attempt } from "./step.ts";
import { type Usage, type UsageDetails, usageDetails } from "./usage.ts";
import type { UsageGroup, UsageSums } from "./usage-group.ts";

/** Sums that can still grow. */
export type Tally = { -readonly [Figure in keyof UsageSums]: UsageSums[Figure] };

export const noSums: UsageSums = {
  steps: 0,
  attempts: 0,
  promptTokens: 0,
  completionTokens: 0,
  totalTokens: 0,
  cachedTokens: 0,
  reasoningTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  audioInputTokens: 0,
  audioOutputTokens: 0,
  imageInputTokens: 0,
  imageOutputTokens: 0,
  costNanoUsd: 0,
  unknownCosts: 0,
  estimated: 0,
  toolCalls: 0,
  durationMs: 0,
};

/** An attempt in flight counts as an attempt that has used nothing. */
export function sumsOfAttempt(
  attempt: Pick<Attempt, "end" | "corrections">,
  steps: number,
): UsageSums {
  const { end } = attempt;
  const figures = figuresOf(attempt);
  if (end === null || figures === null) return { ...noSums, steps, attempts: 1 };
  const { usage, costNanoUsd } = figures;
  return {
    steps,
    attempts: 1,
    promptTokens: usage.promptTokens,
    completionTokens: usage.completionTokens,
    totalTokens: usage.totalTokens,
    ...detailSums(usage),
    costNanoUsd: costNanoUsd ?? 0,
    unknownCosts: costNanoUsd === null ? 1 : 0,
    estimated: end.costBasis === "estimated" ? 1 : 0,
    toolCalls: end.toolCalls,
    durationMs: end.durationMs,
  };
}

function detailSums(usage: Usage): Required<UsageDetails> {
  const { cachedTokens = 0, reasoningTokens = 0, cacheWriteTokens = 0 } = usage;
  const { cacheWrite1hTokens = 0, audioInputTokens = 0, audioOutputTokens = 0 } = usage;
  const { imageInputTokens = 0, imageOutputTokens = 0 } = usage;
  return {
    cachedTokens,
    reasoningTokens,
    cacheWriteTokens,
    cacheWrite1hTokens,
    audioInputTokens,
    audioOutputTokens,
    imageInputTokens,
    imageOutputTokens,
  };
}

export function addTo(tally: Tally, sums: UsageSums): void {
  tally.steps += sums.steps;
  tally.attempts += sums.attempts;
  tally.promptTokens += sums.promptTokens;
  tally.completionTokens += sums.completionTokens;
  tally.totalTokens += sums.totalTokens;
  for (const name of usageDetails) tally[name] += sums[name];
  tally.costNanoUsd += sums.costNanoUsd;
  tally.unknownCosts += sums.unknownCosts;
  tally.estimated += sums.estimated;
  tally.toolCalls += sums.toolCalls;
  tally.durationMs += sums.durationMs;
}

/** Sums only grow, so checking them at the end finds every sum that became too large to be exact. */
export function requireExact<Group extends UsageGroup>(group: Group): Group {
  if (Object.values(group.sums).every(Number.isSafeInteger)) return group;
  throw new GatewayError(
    "invalid_argument",
    "A sum is above 2^53 and not exact: select a shorter time.",
  );
}
