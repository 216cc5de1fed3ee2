import type { PriceBook } from "../contracts/price-book.ts";
import { figuresOf } from "../domain/apply-correction.ts";
import { formatModelId } from "../domain/model-id.ts";
import { isPrice, type PriceSource, priceUsage } from "../domain/price.ts";
import type { Attempt, Step } from "../domain/step.ts";
import type { Usage } from "../domain/usage.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { invalidInput, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import {
  isPriceBook,
  type PriceTable,
  priceProblems,
  tableBook,
} from "../routing/configured-prices.ts";
import { correctionOf } from "./correct-step.ts";
import type { WithActor } from "./key-records.ts";
import { repricing } from "./schemas.ts";
import { toIso } from "./tenant.ts";

/** At what prices to compute anew, and whether to record it. */
export interface RepriceOptions extends WithActor {
  /** A price book, such as a newer catalog, or a table under full model ids in US dollars per million tokens. */
  readonly prices: PricesOnly | PriceTable;
  /** Whether to correct each attempt whose cost comes out different. Default false: nothing is written. */
  readonly apply?: boolean;
}

/** One attempt at its cost and at that of other prices. */
export interface RepricedAttempt {
  readonly organizationId: string;
  /** The Step's id. */
  readonly id: string;
  readonly attempt: number;
  readonly startedAt: string;
  readonly model: string;
  /** Where the recorded cost is from. */
  readonly priceSource: PriceSource;
  /** Nanodollars, corrections included; null when no price was known. */
  readonly costNanoUsd: number | null;
  /**
   * Nanodollars; null where the cost stands: the prices do not know the model, the provider itself told the cost, or
   * somebody corrected it.
   */
  readonly repricedNanoUsd: number | null;
  /** What repricing adds to what is counted; 0 where the cost stands. */
  readonly differenceNanoUsd: number;
  /** Whether this call wrote a correction. */
  readonly corrected: boolean;
}

/** Repricing asks a book for nothing but prices. */
type PricesOnly = Pick<PriceBook, "priceOf">;

/** Why corrections of this origin were made; those of any other stand. */
const reason = "repriced";

/**
 * Computes Steps anew, and corrects them where that is asked for.
 * @throws GatewayError `invalid_argument`
 */
export function createRepricing(
  line: GatewayContext,
  written: RepriceOptions,
): (steps: readonly Step[]) => Promise<readonly RepricedAttempt[]> {
  const { apply = false, actor } = read(repricing, { ...written });
  const book = requireBook(written.prices);
  const acting = actor === undefined ? {} : { actor };

  /** What somebody corrected since the Step was read stands. */
  async function correct(
    step: Step,
    { number, corrections = [] }: Attempt,
    row: RepricedAttempt,
  ): Promise<RepricedAttempt> {
    const { organizationId, id, repricedNanoUsd } = row;
    if (!apply || repricedNanoUsd === null || repricedNanoUsd === row.costNanoUsd) return row;
    const figures = { attempt: number, costNanoUsd: repricedNanoUsd, reason };
    const intent = correctionOf(line, step, { organizationId, id, ...figures, ...acting });
    const correction = { ...intent.correction, after: corrections.length };
    return { ...row, corrected: await line.store.correct({ ...intent, correction }) };
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

/** Null for an attempt in flight, which has no cost yet. */
function repriced(step: Step, attempt: Attempt, book: PricesOnly): RepricedAttempt | null {
  const figures = figuresOf(attempt);
  if (step.outcome === null || attempt.end === null || figures === null) return null;
  const { costNanoUsd, usage } = figures;
  const repricedNanoUsd = keepsCost(attempt) ? null : costIn(book, attempt, usage);
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

/** The provider's own figure and somebody's correction are better than any price list. */
function keepsCost({ end, corrections = [] }: Attempt): boolean {
  return end?.priceSource === "provider" || corrections.some((one) => one.reason !== reason);
}

/** Null where the book does not know the model. */
function costIn(book: PricesOnly, attempt: Attempt, usage: Usage): number | null {
  const { gateway, vendor, model, startedAt, serviceTiers, end } = attempt;
  const message = `The price book gives no price of ${formatModelId(attempt)} that can be computed with.`;
  try {
    const price = book.priceOf({ gateway, vendor, model }, startedAt);
    if (price === null) return null;
    if (!isPrice(price)) throw new TypeError(message);
    const served = end?.serviceTier ?? null;
    return priceUsage(usage, price, { served, tiers: serviceTiers }).costNanoUsd;
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
