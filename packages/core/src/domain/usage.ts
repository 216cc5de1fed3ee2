import { namesOf } from "../kernel/names-of.ts";
import { NANO_PER_USD } from "../kernel/nano-usd.ts";

/** The parts of prompt and completion tokens. Each is present only if the provider reported it; 0 counts as reported. */
export interface UsageDetails {
  /** Of the prompt tokens, those read from the provider's cache. */
  readonly cachedTokens?: number;
  /** Of the prompt tokens, those written to the provider's cache for any time. */
  readonly cacheWriteTokens?: number;
  /** Of the tokens written to the cache, those kept for an hour. */
  readonly cacheWrite1hTokens?: number;
  /** Of the completion tokens, those spent on reasoning. */
  readonly reasoningTokens?: number;
  readonly audioInputTokens?: number;
  readonly audioOutputTokens?: number;
  readonly imageInputTokens?: number;
  readonly imageOutputTokens?: number;
}

/** Tokens of one attempt or one Step. The total is always prompt plus completion. */
export interface Usage extends UsageDetails {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
}

export const noUsage: Usage = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };

/** The count that each detail is a part of: the prompt, the completion or another detail. In the order of records. */
const wholes = {
  cachedTokens: "promptTokens",
  reasoningTokens: "completionTokens",
  cacheWriteTokens: "promptTokens",
  cacheWrite1hTokens: "cacheWriteTokens",
  audioInputTokens: "promptTokens",
  audioOutputTokens: "completionTokens",
  imageInputTokens: "promptTokens",
  imageOutputTokens: "completionTokens",
} as const satisfies Readonly<Record<keyof UsageDetails, keyof Usage>>;

/** Every detail, in the order in which records show them. */
export const usageDetails = namesOf(wholes);

/** No model reads or writes more in one call. A larger count is an error of the provider. */
const maxTokens = 1_000_000_000;

/** Whether a provider can have counted so many tokens in one call. Reported counts are checked before they are used. */
export function isTokenCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= maxTokens;
}

/** No call costs more, in nanodollars. A larger cost is an error of the provider. */
export const maxPlausibleCost = 10_000 * NANO_PER_USD;

/** xAI reports its cost in this part of a dollar. */
const ticksPerUsd = 10_000_000_000;

/**
 * The cost of a call in nanodollars, rounded up, in the `usage` of an upstream that reports one. If OpenRouter used the
 * operator's own key at a provider, `cost` is only its fee, and that provider's charge is a separate figure. Undefined if a
 * figure is missing, negative or above 10,000 US dollars.
 */
export function reportedCost(usage: Readonly<Record<string, unknown>>): number | undefined {
  const ticks = usage["cost_in_usd_ticks"];
  const charged = nanoUsd(typeof ticks === "number" ? ticks / ticksPerUsd : usage["cost"]);
  if (usage["is_byok"] !== true || charged === undefined) return charged;
  const apart = nanoUsd(Object(usage["cost_details"])["upstream_inference_cost"]);
  return apart === undefined ? undefined : charged + apart;
}

/** More than 15 digits are noise of floating-point arithmetic. */
function nanoUsd(usd: unknown): number | undefined {
  if (typeof usd !== "number") return undefined;
  const cost = Number((usd * NANO_PER_USD).toPrecision(15));
  return cost >= 0 && cost <= maxPlausibleCost ? Math.ceil(cost) : undefined;
}

/** Whether the provider counted the tokens, or the gateway estimated them. */
export type UsageBasis = "reported" | "estimated";

/** Adds two usages. A detail is present if either of them has it. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    totalTokens: a.totalTokens + b.totalTokens,
    ...eachDetail((name) =>
      a[name] === undefined && b[name] === undefined ? undefined : (a[name] ?? 0) + (b[name] ?? 0),
    ),
  };
}

/** The details that a function gives a count for. */
export function eachDetail(count: (name: keyof UsageDetails) => number | undefined): UsageDetails {
  let details: { -readonly [Name in keyof UsageDetails]: number } | null = null;
  for (const name of usageDetails) {
    const tokens = count(name);
    if (tokens === undefined) continue;
    details ??= {};
    details[name] = tokens;
  }
  return details ?? noDetails;
}

/** Most usage has none. */
const noDetails: UsageDetails = {};

const promptParts = usageDetails.filter((name) => wholes[name] === "promptTokens");
const completionParts = usageDetails.filter((name) => wholes[name] === "completionTokens");

/**
 * The details that fit into their counts. The parts of a count are disjoint, so their sum can't exceed it. A part that would
 * exceed it, together with the parts before it, is dropped as if it was not reported.
 */
export function fittingDetails(
  details: ReportedDetails,
  {
    promptTokens,
    completionTokens,
  }: { readonly promptTokens?: number | undefined; readonly completionTokens?: number | undefined },
): UsageDetails {
  if (usageDetails.every((name) => details[name] === undefined)) return noDetails;
  const kept: { -readonly [Name in keyof UsageDetails]: number | undefined } = {};
  keepFitting(kept, details, promptTokens, promptParts);
  keepFitting(kept, details, completionTokens, completionParts);
  const { cacheWrite1hTokens = 0 } = details;
  if (kept.cacheWriteTokens !== undefined && cacheWrite1hTokens <= kept.cacheWriteTokens)
    kept.cacheWrite1hTokens = details.cacheWrite1hTokens;
  return eachDetail((name) => kept[name]);
}

type ReportedDetails = { readonly [Name in keyof UsageDetails]: number | undefined };

function keepFitting(
  kept: { -readonly [Name in keyof UsageDetails]: number | undefined },
  details: ReportedDetails,
  whole: number | undefined,
  parts: readonly (keyof UsageDetails)[],
): void {
  if (whole === undefined) return;
  let left = whole;
  for (const name of parts) {
    const tokens = details[name];
    if (tokens === undefined || tokens > left) continue;
    left -= tokens;
    kept[name] = tokens;
  }
}
