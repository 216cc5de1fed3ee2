import { figuresOf } from "../domain/apply-correction.ts";
import { formatModelId } from "../domain/model-id.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { PriceSource } from "../domain/price.ts";
import { standardTier } from "../domain/service-tier.ts";
import type {
  Attempt,
  AttemptError,
  DroppedFields,
  EndpointName,
  Metadata,
  OutputCapSource,
  Step,
  StepOutcome,
} from "../domain/step.ts";
import { totalCost } from "../domain/step-sums.ts";
import { addUsage, noUsage, type Usage, type UsageBasis } from "../domain/usage.ts";
import {
  type CorrectionRecord,
  type FiguresRecord,
  toCorrectionRecord,
  toFiguresRecord,
} from "./correction-records.ts";
import { toIso } from "./tenant.ts";

/** Who a provider bills: `platform` is its operator's account, `customer` the organization's own. */
export type BilledTo = ConnectionOwnership;

/** One attempt: which model, over which account, what it used and cost as last corrected, who is billed. */
export interface AttemptRecord extends Usage {
  readonly number: number;
  readonly decisionId: string;
  readonly model: string;
  readonly connection: ConnectionOwnership;
  /** Who the provider bills for it. */
  readonly billedTo: BilledTo;
  /** Output tokens it held. Tollgate sends them as a cap if a hard budget of dollars or tokens, or the policy's cap, applies. */
  readonly outputCap: number;
  readonly outputCapFrom: OutputCapSource;
  readonly host: string | null;
  readonly bodySha256: string | null;
  readonly providerRequestId: string | null;
  readonly providerModel: string | null;
  readonly outcome: StepOutcome | "open";
  readonly reason: string | null;
  readonly usageBasis: UsageBasis | null;
  /** Nanodollars; null when no price is known. */
  readonly costNanoUsd: number | null;
  /** `estimated` where its usage is, or where the service tier it was served at has no price or was not reported. */
  readonly costBasis: UsageBasis | null;
  readonly priceSource: PriceSource | null;
  /** What the provider said it cost, in nanodollars, whether or not that counts; null when it did not say. */
  readonly reportedCostNanoUsd: number | null;
  /** The service tier it was sent with; `default` for the standard one. */
  readonly requestedServiceTier: string;
  /** The service tier the provider says it was served at; null when it did not say. */
  readonly serviceTier: string | null;
  readonly startedAt: string;
  readonly durationMs: number | null;
  readonly timeToFirstTokenMs: number | null;
  readonly toolCalls: number;
  /** The provider's error text; null if it gave none. Its `message` is null if it isn't kept. */
  readonly error: AttemptError | null;
  /** What was recorded when it ended, where that was corrected since; else null. */
  readonly recorded: FiguresRecord | null;
  /** Oldest first; the last one's figures are the attempt's. */
  readonly corrections: readonly CorrectionRecord[];
}

/** One POST inside a Turn, whatever its end; its usage and cost are the sums over its attempts. */
export interface StepRecord extends Usage {
  readonly id: string;
  readonly organizationId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly keyLabel: string;
  readonly source: string;
  readonly endpoint: EndpointName;
  readonly stream: boolean;
  readonly sessionId: string;
  readonly turnId: string;
  readonly stepNumber: number;
  /** Members of the request's history that were neither sent on nor kept: how often each was there, by name. */
  readonly droppedFields: DroppedFields;
  /** The request's `metadata`; empty if the policy keeps only digests. */
  readonly metadata: Metadata;
  readonly dataClass: string;
  readonly decisionId: string;
  readonly requestedModel: string;
  /** The model of the last attempt. */
  readonly model: string;
  readonly outcome: StepOutcome | "open";
  readonly reason: string | null;
  readonly finishReason: string | null;
  readonly usageBasis: UsageBasis | null;
  /** Nanodollars; null when the price of an attempt is not known. */
  readonly costNanoUsd: number | null;
  /** `estimated` where that of an attempt is. */
  readonly costBasis: UsageBasis | null;
  /** The service tier the last attempt was served at; null when its provider did not say. */
  readonly serviceTier: string | null;
  /** Who is billed for the last attempt; where earlier ones cost something, each says it of itself. */
  readonly billedTo: BilledTo;
  readonly openedAt: string;
  readonly settledAt: string | null;
  readonly attempts: readonly AttemptRecord[];
  readonly head: string;
  readonly replyHead: string | null;
}

export function toStepRecord(step: Step): StepRecord {
  const { attempts, openedAt, settledAt, outcome, ...rest } = step;
  const ends = attempts.flatMap(({ end }) => end ?? []);
  const figures = attempts.flatMap((attempt) => figuresOf(attempt) ?? []);
  const last = attempts.at(-1);
  return {
    ...rest,
    model: last === undefined ? step.requestedModel : formatModelId(last),
    outcome: outcome ?? "open",
    ...figures.map(({ usage }) => usage).reduce(addUsage, noUsage),
    usageBasis: basisOf(ends.map((end) => end.usageBasis)),
    costNanoUsd: totalCost(figures.map(({ costNanoUsd }) => costNanoUsd)),
    costBasis: basisOf(ends.map((end) => end.costBasis)),
    serviceTier: last?.end?.serviceTier ?? null,
    billedTo: last?.connection ?? "platform",
    openedAt: toIso(openedAt),
    settledAt: toIso(settledAt),
    attempts: attempts.map(toAttemptRecord),
  };
}

/** A sum with an estimate in it is one. */
function basisOf(bases: readonly UsageBasis[]): UsageBasis | null {
  if (bases.length === 0) return null;
  return bases.includes("estimated") ? "estimated" : "reported";
}

function toAttemptRecord(attempt: Attempt): AttemptRecord {
  const { end, corrections = [] } = attempt;
  const figures = figuresOf(attempt);
  return {
    number: attempt.number,
    decisionId: attempt.decisionId,
    model: formatModelId(attempt),
    connection: attempt.connection,
    billedTo: attempt.connection,
    outputCap: attempt.estimatedOutputTokens,
    outputCapFrom: attempt.outputCapFrom,
    host: end?.host ?? null,
    bodySha256: end?.bodySha256 ?? null,
    providerRequestId: end?.providerRequestId ?? null,
    providerModel: end?.providerModel ?? null,
    outcome: end?.outcome ?? "open",
    reason: end?.reason ?? null,
    ...(figures?.usage ?? noUsage),
    usageBasis: end?.usageBasis ?? null,
    costNanoUsd: figures?.costNanoUsd ?? null,
    costBasis: end?.costBasis ?? null,
    priceSource: end?.priceSource ?? null,
    reportedCostNanoUsd: end?.reportedCostNanoUsd ?? null,
    requestedServiceTier: attempt.serviceTiers[0] ?? standardTier,
    serviceTier: end?.serviceTier ?? null,
    startedAt: toIso(attempt.startedAt),
    durationMs: end?.durationMs ?? null,
    timeToFirstTokenMs: end?.timeToFirstTokenMs ?? null,
    toolCalls: end?.toolCalls ?? 0,
    error: end?.error ?? null,
    recorded: end && corrections.length > 0 ? toFiguresRecord(end) : null,
    corrections: corrections.map(toCorrectionRecord),
  };
}
