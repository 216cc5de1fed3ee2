import { type Charge, type ChargedKind, decimalScale } from "./charges.ts";

/**
 * A column of the file. `decimal` is a whole number at `decimalScale`, `time` milliseconds since 1970 and `count` a whole
 * number.
 */
export type FocusColumn =
  | { readonly name: string; readonly type: "text"; readonly of: (charge: Charge) => string | null }
  | {
      readonly name: string;
      readonly type: "decimal";
      readonly of: (charge: Charge) => bigint | null;
    }
  | {
      readonly name: string;
      readonly type: "time" | "count";
      readonly of: (charge: Charge) => number | null;
    };

function text(name: string, of: (charge: Charge) => string | null): FocusColumn {
  return { name, type: "text", of };
}

function decimal(name: string, of: (charge: Charge) => bigint | null): FocusColumn {
  return { name, type: "decimal", of };
}

function time(name: string, of: (charge: Charge) => number | null): FocusColumn {
  return { name, type: "time", of };
}

/** A column that doesn't apply to calls of models. */
function none(name: string): FocusColumn {
  return text(name, () => null);
}

const one = 10n ** BigInt(decimalScale);
const million = 1_000_000n;
const secondMs = 1_000;

const meters = {
  input: "Input tokens",
  output: "Output tokens",
  cachedInput: "Cached input tokens",
  cacheWrite5m: "Cache write tokens",
  cacheWrite1h: "Cache write tokens, 1 hour",
  reasoning: "Reasoning tokens",
  audioInput: "Audio input tokens",
  audioOutput: "Audio output tokens",
  imageInput: "Image input tokens",
  imageOutput: "Image output tokens",
  request: "Requests",
  all: "Tokens",
} as const satisfies Readonly<Record<ChargedKind, string>>;

/**
 * The columns of FOCUS 1.2 in the order of the specification, then those of Tollgate. Their order is part of the format, so
 * add new ones at the end.
 */
export const focusColumns: readonly FocusColumn[] = [
  none("AvailabilityZone"),
  decimal("BilledCost", ({ billedCost }) => billedCost),
  text("BillingAccountId", accountOf),
  none("BillingAccountName"),
  text("BillingAccountType", ({ attempt }) => attempt.billedTo),
  text("BillingCurrency", () => "USD"),
  time("BillingPeriodEnd", (charge) => monthOf(charge, 1)),
  time("BillingPeriodStart", (charge) => monthOf(charge, 0)),
  none("CapacityReservationId"),
  none("CapacityReservationStatus"),
  text("ChargeCategory", () => "Usage"),
  text("ChargeClass", classOf),
  text("ChargeDescription", ({ kind, attempt }) => `${meters[kind]} of ${attempt.model}`),
  text("ChargeFrequency", () => "Usage-Based"),
  time("ChargePeriodEnd", ({ attempt }) => endOf(attempt)),
  time("ChargePeriodStart", ({ attempt }) => startOf(attempt)),
  none("CommitmentDiscountCategory"),
  none("CommitmentDiscountId"),
  none("CommitmentDiscountName"),
  none("CommitmentDiscountQuantity"),
  none("CommitmentDiscountStatus"),
  none("CommitmentDiscountType"),
  none("CommitmentDiscountUnit"),
  decimal("ConsumedQuantity", ({ quantity }) => BigInt(quantity) * one),
  text("ConsumedUnit", ({ kind }) => (kind === "request" ? "Requests" : "Tokens")),
  decimal("ContractedCost", ({ listCost }) => listCost),
  decimal("ContractedUnitPrice", unitPriceOf),
  decimal("EffectiveCost", ({ billedCost }) => billedCost),
  none("InvoiceId"),
  text("InvoiceIssuerName", ({ attempt }) => providerOf(attempt)),
  decimal("ListCost", ({ listCost }) => listCost),
  decimal("ListUnitPrice", unitPriceOf),
  text("PricingCategory", () => "Standard"),
  text("PricingCurrency", () => "USD"),
  decimal("PricingCurrencyContractedUnitPrice", unitPriceOf),
  decimal("PricingCurrencyEffectiveCost", ({ billedCost }) => billedCost),
  decimal("PricingCurrencyListUnitPrice", unitPriceOf),
  decimal("PricingQuantity", ({ kind, quantity }) =>
    kind === "request" ? BigInt(quantity) * one : (BigInt(quantity) * one) / million,
  ),
  text("PricingUnit", ({ kind }) => (kind === "request" ? "Requests" : "1000000 Tokens")),
  text("ProviderName", ({ attempt }) => providerOf(attempt)),
  text("PublisherName", ({ attempt }) => attempt.model.split("/")[1] ?? null),
  none("RegionId"),
  none("RegionName"),
  text("ResourceId", ({ attempt }) => attempt.model),
  text("ResourceName", ({ attempt }) => attempt.model.split("/").slice(2).join("/")),
  text("ResourceType", () => "Model"),
  text("ServiceCategory", () => "AI and Machine Learning"),
  text("ServiceName", ({ attempt }) => providerOf(attempt)),
  text("ServiceSubcategory", () => "Generative AI"),
  text("SkuId", skuOf),
  text("SkuMeter", ({ kind }) => meters[kind]),
  text("SkuPriceDetails", ({ nanoUsd, attempt }) =>
    nanoUsd === null ? null : JSON.stringify({ x_ServiceTier: tierOf(attempt) }),
  ),
  text("SkuPriceId", (charge) =>
    charge.nanoUsd === null ? null : `${skuOf(charge)}:${charge.nanoUsd}`,
  ),
  text("SubAccountId", ({ step }) => step.organizationId),
  none("SubAccountName"),
  text("SubAccountType", () => "Organization"),
  text("Tags", ({ step }) => JSON.stringify(step.metadata)),
  text("x_StepId", ({ step }) => step.id),
  { name: "x_Attempt", type: "count", of: ({ attempt }) => attempt.number },
  text("x_DecisionId", ({ attempt }) => attempt.decisionId),
  text("x_KeyId", ({ step }) => step.keyId),
  text("x_UserId", ({ step }) => step.userId),
  text("x_SessionId", ({ step }) => step.sessionId),
  text("x_Outcome", ({ attempt }) => attempt.outcome),
  text("x_PriceSource", ({ attempt }) => attempt.priceSource),
  text("x_CostBasis", ({ attempt }) => attempt.costBasis),
  text("x_UsageBasis", ({ attempt }) => attempt.usageBasis),
  text("x_ProviderRequestId", ({ attempt }) => attempt.providerRequestId),
  text("x_CorrectionId", ({ correction }) => correction?.id ?? null),
  text("x_CorrectionActor", ({ correction }) => correction?.actor ?? null),
];

/** The account that the provider bills: the operator's own, or that of an organization. */
function accountOf({ step, attempt }: Charge): string {
  const provider = providerOf(attempt);
  return attempt.billedTo === "platform"
    ? `platform:${provider}`
    : `customer:${provider}:${step.organizationId}`;
}

type Attempt = Charge["attempt"];

/** The first part of a model id names the provider, as the gateway's configuration does. */
function providerOf({ model }: Attempt): string {
  return model.slice(0, model.indexOf("/"));
}

function tierOf({ serviceTier, requestedServiceTier }: Attempt): string {
  return serviceTier ?? requestedServiceTier;
}

function skuOf({ kind, attempt }: Charge): string {
  return `${attempt.model}:${tierOf(attempt)}:${kind}`;
}

/** Nanodollars are the ninth digit after the decimal point. */
function unitPriceOf({ nanoUsd }: Charge): bigint | null {
  return nanoUsd === null ? null : BigInt(nanoUsd) * million;
}

/** Times of the specification have whole seconds, and an end is exclusive. */
function startOf({ startedAt }: Attempt): number {
  return Math.floor(Date.parse(startedAt) / secondMs) * secondMs;
}

function endOf(attempt: Attempt): number {
  const end = Date.parse(attempt.startedAt) + (attempt.durationMs ?? 0);
  return Math.max(Math.ceil(end / secondMs) * secondMs, startOf(attempt) + secondMs);
}

/** A correction within the month of its attempt is an ordinary charge of that month: its figures add to the others. */
function classOf({ attempt, correction }: Charge): string | null {
  const isLater =
    correction !== null && monthAround(correction.at, 0) !== monthAround(attempt.startedAt, 0);
  return isLater ? "Correction" : null;
}

/** The first instant, in UTC, of the month of an attempt or a correction, or of a later month. */
function monthOf({ attempt, correction }: Charge, later: number): number {
  return monthAround(correction?.at ?? attempt.startedAt, later);
}

function monthAround(time: string, later: number): number {
  const at = new Date(time);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + later);
}
