import type { AttemptSettlement } from "../contracts/step-verbs.ts";
import type { UsageReport } from "../domain/completion-event.ts";
import { costOf, type PriceSource } from "../domain/price.ts";
import type { AttemptEnd, AttemptStart } from "../domain/step.ts";
import { noUsage, type Usage, type UsageBasis } from "../domain/usage.ts";

/** What was seen of an attempt until it ended. */
export interface Observed {
  readonly host: string | null;
  readonly bodySha256: string | null;
  readonly providerRequestId: string | null;
  readonly providerModel: string | null;
  readonly usage: UsageReport;
  readonly outputTokens: number;
  readonly toolCalls: number;
  readonly durationMs: number;
  readonly timeToFirstTokenMs: number | null;
  /** True when no byte was sent or the provider answered an error status: nothing was used. */
  readonly nothingUsed: boolean;
}

/**
 * The one usage record of an attempt. Nothing used: no tokens, cost 0. Otherwise what the provider reported, completed
 * by estimates where it did not, and the provider's own cost before one computed from the price at admission.
 */
export function meterAttempt(
  start: AttemptStart,
  ended: Pick<AttemptEnd, "outcome" | "reason">,
  observed: Observed,
): AttemptSettlement {
  const reported = believable(observed.usage);
  const { usage, basis } = observed.nothingUsed
    ? { usage: noUsage, basis: "reported" as const }
    : usageOf(start, reported, observed.outputTokens);
  const cost = observed.nothingUsed
    ? { costNanoUsd: 0, priceSource: start.price?.source ?? ("unknown" as const) }
    : costOfAttempt(start, reported, usage);
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
    durationMs: Math.round(observed.durationMs),
    timeToFirstTokenMs:
      observed.timeToFirstTokenMs === null ? null : Math.round(observed.timeToFirstTokenMs),
    toolCalls: observed.toolCalls,
    charge: { usd: cost.costNanoUsd ?? 0, tokens: usage.totalTokens },
  };
}

/** No model reads or writes more in one call: a larger figure is a fault of its provider, not a count. */
const mostTokens = 1_000_000_000;

/** What a provider reports, without figures that count nothing: those are as good as not reported. */
function believable(report: UsageReport): UsageReport {
  const { promptTokens, completionTokens, cachedTokens, reasoningTokens, costNanoUsd } = report;
  return {
    ...(isCount(promptTokens) ? { promptTokens } : {}),
    ...(isCount(completionTokens) ? { completionTokens } : {}),
    ...(isPart(cachedTokens, promptTokens) ? { cachedTokens } : {}),
    ...(isPart(reasoningTokens, completionTokens) ? { reasoningTokens } : {}),
    ...(isCount(costNanoUsd, Number.MAX_SAFE_INTEGER) ? { costNanoUsd } : {}),
  };
}

/** A detail of a count is never more than the count. */
function isPart(part: number | undefined, whole: number | undefined): part is number {
  return isCount(whole) && isCount(part, whole);
}

function isCount(figure: number | undefined, most: number = mostTokens): figure is number {
  return figure !== undefined && Number.isSafeInteger(figure) && figure >= 0 && figure <= most;
}

function usageOf(
  start: AttemptStart,
  reported: UsageReport,
  outputTokens: number,
): { usage: Usage; basis: UsageBasis } {
  const promptTokens = reported.promptTokens ?? start.estimatedInputTokens;
  const completionTokens = reported.completionTokens ?? outputTokens;
  const whole = reported.promptTokens !== undefined && reported.completionTokens !== undefined;
  return {
    usage: {
      promptTokens,
      completionTokens,
      totalTokens: promptTokens + completionTokens,
      ...(reported.cachedTokens === undefined ? {} : { cachedTokens: reported.cachedTokens }),
      ...(reported.reasoningTokens === undefined
        ? {}
        : { reasoningTokens: reported.reasoningTokens }),
    },
    basis: whole ? "reported" : "estimated",
  };
}

function costOfAttempt(
  { price }: AttemptStart,
  reported: UsageReport,
  usage: Usage,
): { readonly costNanoUsd: number | null; readonly priceSource: PriceSource } {
  if (reported.costNanoUsd !== undefined)
    return { costNanoUsd: reported.costNanoUsd, priceSource: "provider" };
  if (price === null) return { costNanoUsd: null, priceSource: "unknown" };
  return { costNanoUsd: costOf(usage, price), priceSource: price.source };
}

/** The usage record of an attempt whose process died: its estimated input and the output last recorded, else all it held. */
export function meterInterrupted(
  start: AttemptStart,
  {
    outputTokens,
    durationMs,
  }: { readonly outputTokens: number | null; readonly durationMs: number },
): AttemptSettlement {
  const observed: Observed = {
    host: null,
    bodySha256: null,
    providerRequestId: null,
    providerModel: null,
    usage: {},
    outputTokens: outputTokens ?? start.estimatedOutputTokens,
    toolCalls: 0,
    durationMs,
    timeToFirstTokenMs: null,
    nothingUsed: false,
  };
  return meterAttempt(start, { outcome: "interrupted", reason: "process_lost" }, observed);
}
