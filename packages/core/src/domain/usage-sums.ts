import { GatewayError } from "../errors/gateway-error.ts";
import { namesOf } from "../kernel/names-of.ts";
import { figuresOf } from "./apply-correction.ts";
import type { Attempt } from "./step.ts";
import { usageDetails } from "./usage.ts";
import type { Latencies, UsageGroup, UsageSums } from "./usage-group.ts";

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

/** Upper bounds of the first 19 counts of `Latencies` in milliseconds, inclusive. The last count has everything above. */
export const latencyBounds: readonly number[] = Array.from({ length: 19 }, (_, at) => 8 * 2 ** at);

/** The order of sums in `Figures`. Hourly sums are stored in it, so it may only grow at its end. */
const sumNames = namesOf(noSums);
const place: Record<keyof UsageSums, number> = { ...noSums };
for (const [at, name] of sumNames.entries()) place[name] = at;
const durations = sumNames.length;
const firstTokens = durations + latencyBounds.length + 1;
const figureCount = firstTokens + latencyBounds.length + 1;

/** Sums that can still grow, and after them the counts of both histograms. */
export type Figures = number[];

/** Those figures that aren't 0: their places and values in turn. */
export type FewFigures = readonly number[];

/** V8 keeps a list that once had a fraction as plain doubles, and so its copies, which don't change their kind as they grow. */
const zeros: Figures = new Array<number>(figureCount).fill(0.5).fill(0);

export function noFigures(): Figures {
  return zeros.slice();
}

function add(figures: Figures, at: number, value: number): void {
  if (value !== 0) figures[at] = (figures[at] ?? 0) + value;
}

export function addSteps(figures: Figures, steps: number): void {
  add(figures, place.steps, steps);
}

/**
 * Adds an attempt, or takes it away again. An attempt in flight counts as an attempt that has used nothing. Its Step is not
 * counted.
 */
export function addAttempt(
  figures: Figures,
  attempt: Pick<Attempt, "end" | "corrections">,
  sign: 1 | -1 = 1,
): void {
  add(figures, place.attempts, sign);
  const { end } = attempt;
  const used = figuresOf(attempt);
  if (end === null || used === null) return;
  const { usage, costNanoUsd } = used;
  add(figures, place.promptTokens, sign * usage.promptTokens);
  add(figures, place.completionTokens, sign * usage.completionTokens);
  add(figures, place.totalTokens, sign * usage.totalTokens);
  for (const name of usageDetails) add(figures, place[name], sign * (usage[name] ?? 0));
  add(figures, place.costNanoUsd, sign * (costNanoUsd ?? 0));
  if (costNanoUsd === null) add(figures, place.unknownCosts, sign);
  if (end.costBasis === "estimated") add(figures, place.estimated, sign);
  add(figures, place.toolCalls, sign * end.toolCalls);
  add(figures, place.durationMs, sign * end.durationMs);
  add(figures, durations + bucketOf(end.durationMs), sign);
  if (end.timeToFirstTokenMs !== null)
    add(figures, firstTokens + bucketOf(end.timeToFirstTokenMs), sign);
}

function bucketOf(milliseconds: number): number {
  let at = 0;
  while (at < latencyBounds.length && milliseconds > (latencyBounds[at] ?? 0)) at++;
  return at;
}

export function addFew(figures: Figures, few: FewFigures, sign: 1 | -1 = 1): void {
  for (let at = 0; at < few.length; at += 2) add(figures, few[at] ?? 0, sign * (few[at + 1] ?? 0));
}

export function addFigures(figures: Figures, others: Figures): void {
  for (const [at, value] of others.entries()) add(figures, at, value);
}

export function addGroup(figures: Figures, { sums, latencies }: UsageGroup): void {
  for (const [at, name] of sumNames.entries()) add(figures, at, sums[name]);
  for (const [at, count] of latencies.duration.entries()) add(figures, durations + at, count);
  for (const [at, count] of latencies.timeToFirstToken.entries())
    add(figures, firstTokens + at, count);
}

export function fewOf(figures: Figures): FewFigures {
  return figures.flatMap((value, at) => (value === 0 ? [] : [at, value]));
}

/** Orders the most expensive first, and then the one with most tokens. */
export function byCost(a: Figures, b: Figures): number {
  return (
    (b[place.costNanoUsd] ?? 0) - (a[place.costNanoUsd] ?? 0) ||
    (b[place.totalTokens] ?? 0) - (a[place.totalTokens] ?? 0)
  );
}

/** The sums and histograms that figures contain. */
export function groupOf(figures: Figures): Pick<UsageGroup, "sums" | "latencies"> {
  const sums = { ...noSums };
  writeSums(sums, figures);
  return { sums, latencies: latenciesOf(figures) };
}

/**
 * Sets sums to those that figures contain.
 * @throws GatewayError `invalid_argument` if a sum isn't exact. Sums only grow, so it is enough to check them at the end
 */
export function writeSums(
  sums: { -readonly [Figure in keyof UsageSums]: number },
  figures: Figures,
): void {
  for (let at = 0; at < figureCount; at++)
    if (!(Math.abs(figures[at] ?? 0) <= Number.MAX_SAFE_INTEGER))
      throw new GatewayError(
        "invalid_argument",
        "A sum is above 2^53 and not exact: select a shorter time.",
      );
  sumNames.forEach((name, at) => {
    sums[name] = figures[at] ?? 0;
  });
}

export function latenciesOf(figures: Figures): Latencies {
  return {
    duration: figures.slice(durations, firstTokens),
    timeToFirstToken: figures.slice(firstTokens),
  };
}
