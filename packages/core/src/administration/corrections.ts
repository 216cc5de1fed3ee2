import type { PriceBook } from "../contracts/price-book.ts";
import type { CorrectionIntent } from "../contracts/step-verbs.ts";
import { applyCorrection, figuresOf } from "../domain/apply-correction.ts";
import type { AttemptFigures, CorrectionDraft } from "../domain/correction.ts";
import { formatModelId } from "../domain/model-id.ts";
import { isPrice, type PriceSource, priceUsage } from "../domain/price.ts";
import type { Attempt, Step } from "../domain/step.ts";
import {
  eachDetail,
  fittingDetails,
  type Usage,
  type UsageDetails,
  usageDetails,
} from "../domain/usage.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createLeaf } from "../evidence/leaves.ts";
import { invalidInput, problemAt, read } from "../input/read.ts";
import { sha256Hex } from "../kernel/digest.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import { synchronous } from "../kernel/synchronous.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import {
  isPriceBook,
  type PriceTable,
  priceProblems,
  tableBook,
} from "../routing/configured-prices.ts";
import { reportChange } from "./changes.ts";
import { type Idempotent, idOfCreation, requireSame } from "./idempotency.ts";
import type { WithActor } from "./keys.ts";
import { repricing } from "./schemas.ts";
import { toIso } from "./tenant.ts";

/** The tokens of a correction. The total is their sum; each detail is part of its count. */
export interface CorrectedUsage extends UsageDetails {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** A correction of what one attempt used or cost. Give `usage`, `costNanoUsd` or both; the other one stays as it is. */
export interface StepCorrection extends WithActor, Idempotent {
  readonly organizationId: string;
  /** The Step's id. */
  readonly id: string;
  /** The attempt's number, from 1. Default: the last attempt. */
  readonly attempt?: number;
  readonly usage?: CorrectedUsage;
  /** Nanodollars: a safe integer of at least 0. */
  readonly costNanoUsd?: number;
  /** 1 to 255 characters. The evidence holds only its digest. */
  readonly reason: string;
}

/** The correction to write, for a Step that was just read. */
export function correctionOf(
  { ids, clock }: GatewayContext,
  step: Step,
  correction: StepCorrection,
): CorrectionIntent {
  const { organizationId, id: stepId } = step;
  const draft = {
    id: idOfCreation(ids, correction, "steps.correct", organizationId, stepId),
    at: clock.now(),
    attempt: correction.attempt ?? step.attempts.at(-1)?.number ?? 1,
    usage: correction.usage === undefined ? null : toUsage(correction.usage),
    costNanoUsd: correction.costNanoUsd ?? null,
    reason: correction.reason,
    actor: correction.actor ?? null,
  };
  const { reason, usage, at, ...facts } = draft;
  const leaf = createLeaf(
    { id: ids.uuid(), organizationId, kind: "correction", at },
    {
      actor: facts.actor,
      attempt: facts.attempt,
      correction: facts.id,
      costNanoUsd: facts.costNanoUsd,
      // A reason is free text, so the leaf holds only its digest.
      reasonSha256: sha256Hex(reason),
      step: stepId,
      usage: usage && { ...usage },
    },
  );
  return { organizationId, stepId, correction: draft, leaf };
}

/**
 * Checks that a repeated correction is the same as the Step's existing one.
 * @throws GatewayError `idempotency_mismatch`
 */
export function requireSameCorrection(step: Step, asked: CorrectionDraft): void {
  const isAsked = ({ number }: Attempt) => number === asked.attempt;
  const made = step.attempts.find(isAsked)?.corrections ?? [];
  const place = made.findIndex(({ id }) => id === asked.id);
  const existing = made[place] ?? null;
  // A figure that isn't given keeps its earlier value.
  const attempts = step.attempts.map((attempt) =>
    isAsked(attempt) ? { ...attempt, corrections: made.slice(0, Math.max(place, 0)) } : attempt,
  );
  const again = existing && applyCorrection({ ...step, attempts }, asked)?.correction;
  requireSame(existing, { ...again, at: existing?.at });
}

/** The schema checks each count. This checks that the details fit into their counts. */
function toUsage(usage: CorrectedUsage): Usage {
  const { promptTokens, completionTokens } = usage;
  const totalTokens = promptTokens + completionTokens;
  const details = eachDetail((name) => usage[name]);
  const fitting = fittingDetails(details, usage);
  const problems = [
    ...(Number.isSafeInteger(totalTokens)
      ? []
      : [problemAt("usage", "must add up to at most 2^53 - 1")]),
    ...usageDetails
      .filter((name) => details[name] !== undefined && fitting[name] === undefined)
      .map((name) =>
        problemAt(
          `usage.${name}`,
          "must not exceed its token count when added to the other details",
        ),
      ),
  ];
  if (problems.length > 0) throw invalidInput(problems);
  return { promptTokens, completionTokens, totalTokens, ...details };
}

/** The prices to recompute costs with, and whether to record the result. */
export interface RepriceOptions extends WithActor {
  /** A price book, such as a newer catalog, or a table by full model id in US dollars per million tokens. */
  readonly prices: PricesOnly | PriceTable;
  /** Whether to correct each attempt whose cost differs. Default false: nothing is written. */
  readonly apply?: boolean;
}

/** One attempt, with its cost and its cost at other prices. */
export interface RepricedAttempt {
  readonly organizationId: string;
  /** The Step's id. */
  readonly id: string;
  readonly attempt: number;
  readonly startedAt: string;
  readonly model: string;
  /** Where the recorded cost comes from. */
  readonly priceSource: PriceSource;
  /** Nanodollars, corrections included; null if no price was known. */
  readonly costNanoUsd: number | null;
  /**
   * Nanodollars; null if the cost stays as it is, because the prices don't include the model, the provider reported the cost,
   * someone corrected it, or the attempt used nothing.
   */
  readonly repricedNanoUsd: number | null;
  /** The change of the cost; 0 if it stays as it is. */
  readonly differenceNanoUsd: number;
  /** Whether this call wrote a correction. */
  readonly corrected: boolean;
}

/** The part of a price book that repricing uses. */
type PricesOnly = Pick<PriceBook, "priceOf">;

/** The reason of corrections that repricing makes. It keeps corrections with any other reason. */
const reason = "repriced";

/**
 * Returns a function that recomputes the cost of Steps, and corrects it if the options say so.
 * @throws GatewayError `invalid_argument`
 */
export function createRepricing(
  context: GatewayContext,
  options: RepriceOptions,
): (steps: readonly Step[]) => Promise<readonly RepricedAttempt[]> {
  const { apply = false, actor } = read(repricing, { ...options });
  const book = requireBook(options.prices);
  const acting = actor === undefined ? {} : { actor };

  /** Does nothing if someone has corrected the attempt since the Step was read. */
  async function correct(
    step: Step,
    { number, corrections = [] }: Attempt,
    row: RepricedAttempt,
  ): Promise<RepricedAttempt> {
    const { organizationId, id, repricedNanoUsd } = row;
    if (!apply || repricedNanoUsd === null || repricedNanoUsd === row.costNanoUsd) return row;
    const figures = { attempt: number, costNanoUsd: repricedNanoUsd, reason };
    const intent = correctionOf(context, step, { organizationId, id, ...figures, ...acting });
    const correction = { ...intent.correction, after: corrections.length };
    const corrected = await context.store.correct({ ...intent, correction });
    if (corrected) reportChange(context, intent.leaf);
    await yieldToEventLoop();
    return { ...row, corrected };
  }

  return async (steps) => {
    const rows: RepricedAttempt[] = [];
    for (const step of steps)
      for (const attempt of step.attempts) {
        const row = repriced(step, attempt, book);
        if (row !== null) rows.push(await correct(step, attempt, row));
      }
    return rows;
  };
}

/** Null for an attempt that is still running and has no cost yet. */
function repriced(step: Step, attempt: Attempt, book: PricesOnly): RepricedAttempt | null {
  const figures = figuresOf(attempt);
  if (step.outcome === null || attempt.end === null || figures === null) return null;
  const { costNanoUsd, usage } = figures;
  const repricedNanoUsd = keepsCost(attempt, figures) ? null : costIn(book, attempt, usage);
  return {
    organizationId: step.organizationId,
    id: step.id,
    attempt: attempt.number,
    startedAt: toIso(attempt.startedAt),
    model: formatModelId(attempt),
    priceSource: attempt.end.priceSource,
    costNanoUsd,
    repricedNanoUsd,
    differenceNanoUsd: repricedNanoUsd === null ? 0 : repricedNanoUsd - (costNanoUsd ?? 0),
    corrected: false,
  };
}

/** A cost that the provider reported, or that someone corrected, is better than any price list. Nothing used is free. */
function keepsCost({ end, corrections = [] }: Attempt, { usage, costNanoUsd }: AttemptFigures) {
  return (
    end?.priceSource === "provider" ||
    (costNanoUsd === 0 && usage.totalTokens === 0 && end?.outcome !== "completed") ||
    corrections.some((correction) => correction.reason !== reason)
  );
}

/** Null if the book has no price for the model. */
function costIn(book: PricesOnly, attempt: Attempt, usage: Usage): number | null {
  const { gateway, vendor, model, startedAt, serviceTiers, end } = attempt;
  const message = `\`prices\` has no valid price for ${formatModelId(attempt)}.`;
  try {
    const price = synchronous(book.priceOf({ gateway, vendor, model }, startedAt));
    if (price === null) return null;
    if (!isPrice(price)) throw new TypeError(message);
    const served = end?.serviceTier ?? null;
    const tiers = { served, tiers: serviceTiers };
    return priceUsage(usage, price, tiers, end?.usageBasis).costNanoUsd;
  } catch (cause) {
    throw new GatewayError("invalid_argument", message, { param: "prices", cause });
  }
}

function requireBook(prices: PricesOnly | PriceTable): PricesOnly {
  if (isPriceBook(prices)) return prices;
  const problems = priceProblems(new Map(), prices);
  if (problems.length > 0) throw invalidInput(problems);
  return tableBook(prices);
}
