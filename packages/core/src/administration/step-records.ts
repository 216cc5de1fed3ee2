import { figuresOf } from "../domain/apply-correction.ts";
import type { AttemptFigures, Correction } from "../domain/correction.ts";
import { formatModelId } from "../domain/model-id.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import { type ListPrice, listPrices, type PriceSource } from "../domain/price.ts";
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
import { toIso } from "./tenant.ts";

/** Who the provider bills: `platform` is the operator's account, `customer` the organization's own. */
export type BilledTo = ConnectionOwnership;

/** One attempt, with its usage and cost as last corrected. */
export interface AttemptRecord extends Usage {
  readonly number: number;
  readonly decisionId: string;
  readonly model: string;
  readonly connection: ConnectionOwnership;
  /** The account that the provider bills. */
  readonly billedTo: BilledTo;
  /** The output tokens that it held. Tollgate sends them as a cap if a hard budget of dollars or tokens, or the policy's cap, applies. */
  readonly outputCap: number;
  readonly outputCapFrom: OutputCapSource;
  readonly host: string | null;
  readonly bodySha256: string | null;
  readonly providerRequestId: string | null;
  readonly providerModel: string | null;
  readonly outcome: StepOutcome | "open";
  readonly reason: string | null;
  readonly usageBasis: UsageBasis | null;
  /** Nanodollars; null if no price is known. */
  readonly costNanoUsd: number | null;
  /** Its usage by kind of token, at the prices it was opened with; null without any. A reported or estimated cost can differ. */
  readonly listPrices: readonly ListPrice[] | null;
  /** `estimated` if its usage is, or if its service tier has no price or wasn't reported. */
  readonly costBasis: UsageBasis | null;
  readonly priceSource: PriceSource | null;
  /** The cost that the provider reported in nanodollars, even if it isn't used; null if it reported none. */
  readonly reportedCostNanoUsd: number | null;
  /** The service tier that was requested upstream; `default` for the standard one. */
  readonly requestedServiceTier: string;
  /** The service tier that the provider reported; null if it reported none. */
  readonly serviceTier: string | null;
  readonly startedAt: string;
  readonly durationMs: number | null;
  readonly timeToFirstTokenMs: number | null;
  readonly toolCalls: number;
  /** The provider's error text; null if it gave none. Its `message` is null if it isn't kept. */
  readonly error: AttemptError | null;
  /** The figures recorded when it ended, if they were corrected since; otherwise null. */
  readonly recorded: FiguresRecord | null;
  /** Oldest first. The figures of the last one are the attempt's. */
  readonly corrections: readonly CorrectionRecord[];
}

/**
 * One POST, however it ended. Its usage and cost are the sums of its attempts. An embeddings call has no Session, Turn or
 * step number: these members and `head` are null.
 */
export interface StepRecord extends Usage {
  readonly id: string;
  readonly organizationId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly keyLabel: string;
  readonly source: string;
  readonly endpoint: EndpointName;
  readonly stream: boolean;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly stepNumber: number | null;
  /** How often each unknown member of the request's history was dropped, by name. */
  readonly droppedFields: DroppedFields;
  /** The request's `metadata`; empty if the policy keeps only digests. */
  readonly metadata: Metadata;
  /** SHA-256 in hex of its `Idempotency-Key`; null without one. */
  readonly idempotencyKeySha256: string | null;
  /** The Step that this one probably repeats, because an SDK retried it without an `Idempotency-Key`; null for none. */
  readonly retryOf: string | null;
  readonly dataClass: string;
  readonly decisionId: string;
  readonly requestedModel: string;
  /** The model of the last attempt. */
  readonly model: string;
  readonly outcome: StepOutcome | "open";
  readonly reason: string | null;
  readonly finishReason: string | null;
  readonly usageBasis: UsageBasis | null;
  /** Nanodollars; null if the price of an attempt is unknown. */
  readonly costNanoUsd: number | null;
  /** `estimated` if the cost of any attempt is. */
  readonly costBasis: UsageBasis | null;
  /** The service tier of the last attempt; null if its provider reported none. */
  readonly serviceTier: string | null;
  /** The account billed for the last attempt. Each attempt has its own. */
  readonly billedTo: BilledTo;
  readonly openedAt: string;
  readonly settledAt: string | null;
  readonly attempts: readonly AttemptRecord[];
  readonly head: string | null;
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

/** A sum that includes an estimate is an estimate. */
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
    listPrices: figures && listPricesOf(attempt, figures),
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
    recorded: end && corrections.length > 0 ? toFiguresRecord(attempt, end) : null,
    corrections: corrections.map((correction) => toCorrectionRecord(attempt, correction)),
  };
}

/** An attempt's tokens, and its cost in nanodollars; null if no price is known. */
export interface FiguresRecord extends Usage {
  readonly costNanoUsd: number | null;
  /** As those of the attempt, for this usage. */
  readonly listPrices: readonly ListPrice[] | null;
}

/** A correction of one attempt: its new figures, who made it and why. */
export interface CorrectionRecord extends FiguresRecord {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  /** Null if none was given. */
  readonly actor: string | null;
  readonly reason: string;
}

function toCorrectionRecord(attempt: Attempt, correction: Correction): CorrectionRecord {
  const { id, at, actor, reason } = correction;
  return { id, at: toIso(at), actor, reason, ...toFiguresRecord(attempt, correction) };
}

function toFiguresRecord(attempt: Attempt, figures: AttemptFigures): FiguresRecord {
  const { usage, costNanoUsd } = figures;
  return { ...usage, costNanoUsd, listPrices: listPricesOf(attempt, figures) };
}

/** An attempt that used nothing, such as one that was never sent, has none. */
function listPricesOf(
  { price, serviceTiers, end }: Attempt,
  { usage, costNanoUsd }: AttemptFigures,
): readonly ListPrice[] | null {
  if (price === null) return null;
  if (usage.totalTokens === 0 && costNanoUsd === 0) return [];
  return listPrices(usage, price, { served: end?.serviceTier ?? null, tiers: serviceTiers });
}

/** A successful completion, with its usage, cost and API key. */
export interface ActivityRecord
  extends Omit<StepRecord, "attempts" | "outcome" | "reason" | "head" | "replyHead"> {
  readonly gateway: string;
  /** The vendor part of the model's id. */
  readonly provider: string;
  readonly host: string | null;
  readonly connection: ConnectionOwnership;
  readonly priceSource: PriceSource | null;
  readonly durationMs: number;
  readonly timeToFirstTokenMs: number | null;
  readonly toolCalls: number;
}

export function toActivityRecord(step: Step): ActivityRecord {
  const {
    attempts,
    outcome: _outcome,
    reason: _reason,
    head: _head,
    replyHead: _replyHead,
    ...record
  } = toStepRecord(step);
  const last = step.attempts.at(-1);
  const end = last?.end;
  return {
    ...record,
    gateway: last?.gateway ?? "",
    provider: last?.vendor ?? "",
    host: end?.host ?? null,
    connection: last?.connection ?? "platform",
    priceSource: end?.priceSource ?? null,
    durationMs: attempts.reduce((sum, attempt) => sum + (attempt.durationMs ?? 0), 0),
    timeToFirstTokenMs: end?.timeToFirstTokenMs ?? null,
    toolCalls: end?.toolCalls ?? 0,
  };
}
