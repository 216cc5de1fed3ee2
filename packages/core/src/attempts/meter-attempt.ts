import type { AttemptSettlement, CommittedContent } from "../contracts/step-verbs.ts";
import type { UsageReport } from "../domain/completion-event.ts";
import { costBounds, type Price, priceUsage } from "../domain/price.ts";
import { isServedTier, tierOf } from "../domain/service-tier.ts";
import type { AttemptEnd, AttemptStart } from "../domain/step.ts";
import {
  eachDetail,
  fittingDetails,
  isTokenCount,
  maxPlausibleCost,
  noUsage,
  type Usage,
  type UsageBasis,
} from "../domain/usage.ts";

/** Everything observed during an attempt. */
export interface AttemptObservation {
  readonly host: string | null;
  readonly bodySha256: string | null;
  readonly providerRequestId: string | null;
  readonly providerModel: string | null;
  readonly usage: UsageReport;
  /** The factor by which the provider's reported cost may differ from the price table; null if it isn't trusted. */
  readonly reportedCostFactor: number | null;
  readonly output: ObservedOutput;
  readonly toolCalls: number;
  readonly durationMs: number;
  readonly timeToFirstTokenMs: number | null;
  /** Whether nothing was used: no byte was sent, or the provider answered with an error status. */
  readonly nothingUsed: boolean;
  /** The provider's error text; null for none. */
  readonly error: CommittedContent | null;
}

/** The observed output of a model. */
export interface ObservedOutput {
  /** An upper estimate of the tokens of its text, including reasoning and tool calls. */
  readonly tokens: number;
  /** Whether it includes text, a refusal or a tool call. */
  readonly isVisible: boolean;
  /** Whether the model showed or reported reasoning. */
  readonly hasReasoned: boolean;
  /** Whether the model gave its finish reason and wrote nothing after its last usage. Before that, usage is incomplete. */
  readonly isFinished: boolean;
}

/**
 * The output tokens that the observed text accounts for. Null if only the held amount is certainly enough: a model that
 * reasons writes more than it shows, and a model without visible output may have written anything.
 */
export function knownOutputTokens(
  { reasons }: Pick<AttemptStart, "reasons">,
  { tokens, isVisible, hasReasoned }: ObservedOutput,
): number | null {
  return isVisible && !reasons && !hasReasoned ? tokens : null;
}

/**
 * The usage record of an attempt, however it ended. If nothing was used: no tokens, cost 0. Otherwise the reported usage, or
 * the estimated input and the observed or held output; at the price that the serving tier had at admission.
 */
export function meterAttempt(
  start: AttemptStart,
  ended: Pick<AttemptEnd, "outcome" | "reason">,
  observed: AttemptObservation,
): AttemptSettlement {
  const reported = plausibleUsage(observed.usage, observed.output);
  const { usage, basis } = observed.nothingUsed
    ? { usage: noUsage, basis: "reported" as const }
    : usageOf(start, reported, observed.output);
  const cost: Cost = observed.nothingUsed
    ? { costNanoUsd: 0, costBasis: basis, priceSource: start.price?.source ?? "unknown" }
    : costOfAttempt(start, { usage, basis }, { reported, trust: observed.reportedCostFactor });
  return {
    number: start.number,
    outcome: ended.outcome,
    reason: ended.reason,
    host: observed.host,
    bodySha256: observed.bodySha256,
    providerRequestId: observed.providerRequestId,
    providerModel: observed.providerModel,
    usage,
    usageBasis: basis,
    ...cost,
    reportedCostNanoUsd: reported.costNanoUsd ?? null,
    serviceTier: reported.serviceTier === undefined ? null : tierOf(reported.serviceTier),
    durationMs: Math.round(observed.durationMs),
    timeToFirstTokenMs:
      observed.timeToFirstTokenMs === null ? null : Math.round(observed.timeToFirstTokenMs),
    toolCalls: observed.toolCalls,
    error: observed.error,
    charge: { usd: cost.costNanoUsd ?? 0, tokens: usage.totalTokens },
  };
}

/** The input of a running attempt: as its provider reported it, otherwise as estimated. No output is counted. */
export function inputSoFar(
  { estimatedInputTokens }: Pick<AttemptStart, "estimatedInputTokens">,
  { usage, output }: Pick<AttemptObservation, "usage" | "output">,
): Usage {
  const reported = plausibleUsage(usage, output);
  const { promptTokens = estimatedInputTokens } = reported;
  const details = fittingDetails(reported, { promptTokens: reported.promptTokens });
  return { promptTokens, completionTokens: 0, totalTokens: promptTokens, ...details };
}

/**
 * The reported usage without implausible numbers, which count as not reported. A cost counts only after the answer is
 * finished.
 */
function plausibleUsage(report: UsageReport, { isFinished }: ObservedOutput): UsageReport {
  const { promptTokens, completionTokens, costNanoUsd, serviceTier } = report;
  const believed: { -readonly [Name in keyof UsageReport]: UsageReport[Name] } = {};
  if (isTokenCount(promptTokens)) believed.promptTokens = promptTokens;
  if (isTokenCount(completionTokens)) believed.completionTokens = completionTokens;
  const details = eachDetail((name) => {
    const count = report[name];
    return isTokenCount(count) ? count : undefined;
  });
  Object.assign(believed, fittingDetails(details, believed));
  if (isFinished && isPlausibleCost(costNanoUsd)) believed.costNanoUsd = costNanoUsd;
  if (isServedTier(serviceTier)) believed.serviceTier = serviceTier;
  return believed;
}

function isPlausibleCost(cost: number | undefined): cost is number {
  return cost !== undefined && Number.isSafeInteger(cost) && cost >= 0 && cost <= maxPlausibleCost;
}

function usageOf(
  start: AttemptStart,
  reported: UsageReport,
  output: ObservedOutput,
): { usage: Usage; basis: UsageBasis } {
  const promptTokens = reported.promptTokens ?? start.estimatedInputTokens;
  const completionTokens = output.isFinished
    ? (reported.completionTokens ?? unreportedOutput(start, output))
    : Math.max(reported.completionTokens ?? 0, unreportedOutput(start, output));
  const whole =
    output.isFinished &&
    reported.promptTokens !== undefined &&
    reported.completionTokens !== undefined;
  return {
    usage: {
      promptTokens,
      completionTokens,
      totalTokens: promptTokens + completionTokens,
      ...eachDetail((name) => reported[name]),
    },
    basis: whole ? "reported" : "estimated",
  };
}

type Cost = Pick<AttemptEnd, "costNanoUsd" | "costBasis" | "priceSource">;

/**
 * The table's price of the serving tier; or the reported cost, if it is trusted and close to the table's price. Without a
 * table, a trusted cost is used as reported.
 */
function costOfAttempt(
  { price, serviceTiers }: AttemptStart,
  { usage, basis }: { readonly usage: Usage; readonly basis: UsageBasis },
  { reported, trust }: { readonly reported: UsageReport; readonly trust: number | null },
): Cost {
  const { costNanoUsd: reportedCost } = reported;
  if (
    reportedCost !== undefined &&
    trust !== null &&
    isWithin(reportedCost, { usage, price, factor: trust })
  )
    return { costNanoUsd: reportedCost, costBasis: "reported", priceSource: "provider" };
  if (price === null) return { costNanoUsd: null, costBasis: basis, priceSource: "unknown" };
  const served = reported.serviceTier === undefined ? null : tierOf(reported.serviceTier);
  const priced = priceUsage(usage, price, { served, tiers: serviceTiers }, basis);
  return { costNanoUsd: priced.costNanoUsd, costBasis: priced.basis, priceSource: price.source };
}

function isWithin(
  reportedCost: number,
  {
    usage,
    price,
    factor,
  }: { readonly usage: Usage; readonly price: Price | null; readonly factor: number },
): boolean {
  if (price === null) return true;
  const { min, max } = costBounds(usage, price);
  return reportedCost >= min / factor && reportedCost <= max * factor;
}

function unreportedOutput(start: AttemptStart, output: ObservedOutput): number {
  return knownOutputTokens(start, output) ?? Math.max(start.estimatedOutputTokens, output.tokens);
}

/** The usage of an attempt whose process died: the estimated input, and the last recorded output or else all it held. */
export function meterInterrupted(
  start: AttemptStart,
  {
    outputTokens,
    durationMs,
  }: { readonly outputTokens: number | null; readonly durationMs: number },
): AttemptSettlement {
  const observed: AttemptObservation = {
    host: null,
    bodySha256: null,
    providerRequestId: null,
    providerModel: null,
    usage: {},
    reportedCostFactor: null,
    output: {
      tokens: outputTokens ?? 0,
      isVisible: outputTokens !== null,
      hasReasoned: false,
      isFinished: false,
    },
    toolCalls: 0,
    durationMs,
    timeToFirstTokenMs: null,
    nothingUsed: false,
    error: null,
  };
  return meterAttempt(start, { outcome: "interrupted", reason: "process_lost" }, observed);
}
